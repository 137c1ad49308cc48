import { type Bytes, bytesOf } from '../../node/bytes.ts'
import type { Jwk } from '../asymmetric-key.ts'
import { fail } from '../fail.ts'
import { toText } from '../../node/text.ts'
import { type CryptoKey, factsOfKey, type KeyFacts, type Usage, USAGES } from './crypto-key.ts'

/** Members of an algorithm that user code gave. */
export type Params = Readonly<Record<string, unknown>> & { readonly name: string }

export interface KeyPair {
  readonly publicKey: CryptoKey
  readonly privateKey: CryptoKey
}

/** How a key looks outside, once it is known to be one of these. */
export type KeyFormat = 'raw' | 'spki' | 'pkcs8' | 'jwk'
export type KeyData =
  | { readonly format: 'jwk'; readonly jwk: Jwk }
  | { readonly format: 'raw' | 'spki' | 'pkcs8'; readonly bytes: Bytes }

export interface ImportRequest {
  readonly params: Params
  readonly data: KeyData
  readonly extractable: boolean
  readonly usages: readonly Usage[]
}

export interface GenerateRequest {
  readonly params: Params
  readonly extractable: boolean
  readonly usages: readonly Usage[]
}

/** An algorithm of `crypto.subtle`: the operations that it has, after what is common to all. */
export interface Algorithm {
  readonly name: string
  digest?(params: Params, data: Bytes): Bytes
  encrypt?(params: Params, key: KeyFacts, data: Bytes): Bytes
  decrypt?(params: Params, key: KeyFacts, data: Bytes): Bytes
  sign?(params: Params, key: KeyFacts, data: Bytes): Bytes
  verify?(params: Params, key: KeyFacts, signature: Bytes, data: Bytes): boolean
  /** @param bits null: as many as there are */
  deriveBits?(params: Params, key: KeyFacts, bits: number | null): Bytes
  wrap?(params: Params, key: KeyFacts, data: Bytes): Bytes
  unwrap?(params: Params, key: KeyFacts, data: Bytes): Bytes
  generate?(request: GenerateRequest): CryptoKey | KeyPair
  import?(request: ImportRequest): CryptoKey
  export?(key: CryptoKey, format: KeyFormat): Bytes | Record<string, unknown>
  /** In bits; null for what takes any length. */
  keyLength?(params: Params): number | null
}

/** @throws TypeError */
export function requiredBytes(params: Params, name: string): Bytes {
  const bytes = bytesOf(params[name])
  if (bytes === undefined) throw new TypeError(`${params.name}: ${name} must be a buffer or a view of one.`)
  return bytes
}

/** @throws TypeError */
export function optionalBytes(params: Params, name: string): Bytes | undefined {
  return params[name] === undefined ? undefined : requiredBytes(params, name)
}

/** What WebIDL calls an unsigned number with [EnforceRange]. @throws TypeError */
export function requiredNumber(params: Params, name: string, bits: 8 | 16 | 32 = 32): number {
  if (params[name] === undefined) throw new TypeError(`${params.name}: ${name} is required.`)
  return toUnsigned(params[name], `${params.name}: ${name}`, bits)
}

/** @throws TypeError */
export function optionalNumber(params: Params, name: string, bits: 8 | 16 | 32 = 32): number | undefined {
  return params[name] === undefined ? undefined : requiredNumber(params, name, bits)
}

/** @throws TypeError */
export function toUnsigned(value: unknown, what: string, bits: 8 | 16 | 32 = 32): number {
  const number = Math.trunc(Number(value))
  if (!(number >= 0 && number < 2 ** bits)) throw new TypeError(`${what} must be a number from 0 to ${2 ** bits - 1}.`)
  return number
}

/** Names of digests: those of the web, those of OpenSSL, and the numbers in names of JWK algorithms. */
export const DIGESTS = [
  { name: 'SHA-1', native: 'SHA1', suffix: '1' },
  { name: 'SHA-256', native: 'SHA256', suffix: '256' },
  { name: 'SHA-384', native: 'SHA384', suffix: '384' },
  { name: 'SHA-512', native: 'SHA512', suffix: '512' },
  { name: 'SHA3-256', native: 'SHA3-256', suffix: '' },
  { name: 'SHA3-384', native: 'SHA3-384', suffix: '' },
  { name: 'SHA3-512', native: 'SHA3-512', suffix: '' },
] as const

export type Digest = (typeof DIGESTS)[number]

export function digestNamed(name: string): Digest | undefined {
  const upper = name.toUpperCase()
  return DIGESTS.find((digest) => digest.name === upper)
}

/** @throws TypeError; DOMException `NotSupportedError` */
export function requiredHash(params: Params): Digest {
  const given = params['hash']
  if (given === undefined) throw new TypeError(`${params.name}: hash is required.`)
  return digestNamed(nameOf(given)) ?? fail('NotSupportedError', 'Unrecognized algorithm name')
}

/** The digest that a key was made for. */
export function hashOf(key: KeyFacts): Digest {
  return digestNamed(key.algorithm.hash!.name)!
}

/** @throws TypeError */
export function nameOf(algorithm: unknown): string {
  if (typeof algorithm === 'string') return algorithm
  if ((typeof algorithm !== 'object' && typeof algorithm !== 'function') || algorithm === null) {
    throw new TypeError('An algorithm is a name, or an object with a name.')
  }
  const { name } = algorithm as { name?: unknown }
  if (name === undefined) throw new TypeError('The algorithm has no name.')
  return toText(name)
}

/** @throws DOMException `SyntaxError` */
export function checkUsages(usages: readonly Usage[], ...allowed: readonly Usage[]): void {
  if (usages.some((usage) => !allowed.includes(usage))) fail('SyntaxError', 'Unsupported key usage.')
}

export function intersect(usages: readonly Usage[], ...allowed: readonly Usage[]): Usage[] {
  return usages.filter((usage) => allowed.includes(usage))
}

/** @throws TypeError */
export function toUsages(value: unknown): Usage[] {
  if (typeof value !== 'object' || value === null) throw new TypeError('Key usages are a list.')
  const usages = Array.from(value as Iterable<unknown>, toText) as Usage[]
  const unknown = usages.find((usage) => !USAGES.includes(usage))
  if (unknown !== undefined) throw new TypeError(`There is no key usage '${unknown}'.`)
  return usages
}

interface JwkRules {
  readonly kty: string
  /** What `use` has to be where it says something. */
  readonly use: 'sig' | 'enc'
  readonly alg?: string | undefined
}

/** What all keys in JWK have in common. @throws DOMException `DataError` */
export function checkJwk(jwk: Jwk, { kty, use, alg }: JwkRules, { extractable, usages }: ImportRequest): void {
  if (jwk['kty'] !== kty) fail('DataError', 'Invalid JWK "kty" Parameter')
  if (usages.length > 0 && jwk['use'] !== undefined && jwk['use'] !== use) fail('DataError', 'Invalid JWK "use" Parameter')
  if (jwk['key_ops'] !== undefined) checkOperations(jwk['key_ops'], usages)
  if (jwk['ext'] === false && extractable) fail('DataError', 'JWK "ext" Parameter and extractable mismatch')
  if (alg !== undefined && jwk['alg'] !== undefined && jwk['alg'] !== alg) {
    fail('DataError', 'JWK "alg" does not match the requested algorithm')
  }
}

function checkOperations(given: unknown, usages: readonly Usage[]): void {
  if (!Array.isArray(given)) fail('DataError', 'Invalid JWK "key_ops" Parameter')
  const operations = given as unknown[]
  if (new Set(operations).size !== operations.length) fail('DataError', 'Duplicate key operation')
  if (usages.some((usage) => !operations.includes(usage))) fail('DataError', 'Key operations and usage mismatch')
}

/** What a JWK says beside the key itself. */
export function jwkRest(key: CryptoKey): Record<string, unknown> {
  return { key_ops: [...key.usages], ext: factsOfKey(key).extractable }
}
