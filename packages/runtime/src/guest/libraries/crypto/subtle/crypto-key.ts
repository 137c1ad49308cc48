import type { AsymmetricKey } from '../asymmetric-key.ts'
import type { Bytes } from '../../node/bytes.ts'

/** In the order in which a key tells them. */
export const USAGES = ['encrypt', 'decrypt', 'sign', 'verify', 'deriveKey', 'deriveBits', 'wrapKey', 'unwrapKey'] as const
export type Usage = (typeof USAGES)[number]

/** What a key says of its algorithm. */
export interface KeyAlgorithm {
  readonly name: string
  readonly length?: number
  readonly hash?: { readonly name: string }
  readonly modulusLength?: number
  readonly publicExponent?: Uint8Array
  readonly namedCurve?: string
}

export interface KeyFacts {
  readonly algorithm: KeyAlgorithm
  readonly extractable: boolean
  readonly usages: readonly Usage[]
  /** A secret key's bytes, or a key of two halves. */
  readonly material: Bytes | AsymmetricKey
}

const TOKEN = {}

export let factsOfKey: (key: CryptoKey) => KeyFacts
export let isCryptoKey: (value: unknown) => value is CryptoKey

export class CryptoKey {
  readonly #facts: KeyFacts
  #algorithm: KeyAlgorithm | undefined
  #usages: Usage[] | undefined

  constructor(token?: unknown, facts?: KeyFacts) {
    if (token !== TOKEN || facts === undefined) throw new TypeError('Illegal constructor')
    this.#facts = facts
  }

  get type(): 'secret' | 'public' | 'private' {
    const { material } = this.#facts
    if (material instanceof Uint8Array) return 'secret'
    return material.isPrivate ? 'private' : 'public'
  }

  get extractable(): boolean {
    return this.#facts.extractable
  }

  // Both are objects that belong to whoever has the key, and the same each time.
  get algorithm(): KeyAlgorithm {
    if (this.#algorithm === undefined) {
      const { hash, publicExponent, ...rest } = this.#facts.algorithm
      this.#algorithm = {
        ...rest,
        ...(publicExponent !== undefined && { publicExponent: publicExponent.slice() }),
        ...(hash !== undefined && { hash: { ...hash } }),
      }
    }
    return this.#algorithm
  }

  get usages(): Usage[] {
    return (this.#usages ??= [...this.#facts.usages])
  }

  static {
    isCryptoKey = (value): value is CryptoKey => typeof value === 'object' && value !== null && #facts in value
    factsOfKey = (key) => key.#facts
  }
}

Object.defineProperty(CryptoKey, 'length', { value: 0 })

export function makeKey(facts: KeyFacts): CryptoKey {
  const usages = USAGES.filter((usage) => facts.usages.includes(usage))
  return new CryptoKey(TOKEN, { ...facts, usages })
}
