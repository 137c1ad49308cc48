import type { Jwk } from '../asymmetric-key.ts'
import { type Bytes, bytesOf } from '../../node/bytes.ts'
import { decodeUtf8, encodeUtf8 } from '../../../web-api/encoding.ts'
import { fail } from '../fail.ts'
import { toText } from '../../node/text.ts'
import { AES } from './aes.ts'
import {
  type Algorithm,
  type KeyData,
  type KeyFormat,
  type KeyPair,
  nameOf,
  type Params,
  toUnsigned,
  toUsages,
} from './algorithm.ts'
import { type CryptoKey, factsOfKey, isCryptoKey, type KeyFacts, type Usage } from './crypto-key.ts'
import { CURVE_ALGORITHMS } from './curve-algorithms.ts'
import { RSA } from './rsa.ts'
import { DIGEST_ALGORITHMS, SECRETS } from './secrets.ts'

const ALGORITHMS = [...AES, ...SECRETS, ...RSA, ...CURVE_ALGORITHMS, ...DIGEST_ALGORITHMS]

type Operation = Exclude<keyof Algorithm, 'name'>

/** An algorithm that has the operation, with what it was asked for. */
interface Asked<O extends Operation> {
  readonly algorithm: Algorithm & Required<Pick<Algorithm, O>>
  readonly params: Params
}

interface AnyAsked {
  readonly algorithm: Algorithm
}

/** @throws TypeError; DOMException `NotSupportedError` */
function ask<O extends Operation>(operation: O, given: unknown): Asked<O> {
  return find(operation, given) ?? fail('NotSupportedError', 'Unrecognized algorithm name')
}

function find<O extends Operation>(operation: O, given: unknown): Asked<O> | undefined {
  const name = nameOf(given).toUpperCase()
  const algorithm = ALGORITHMS.find((one) => one.name.toUpperCase() === name && one[operation] !== undefined)
  if (algorithm === undefined) return undefined
  const members = typeof given === 'string' ? {} : (given as object)
  // Its getters are for user code to have; each member is read when it is needed, and no more often.
  const params = new Proxy(members, {
    get: (target, key) => (key === 'name' ? algorithm.name : (Reflect.get(target, key) as unknown)),
  }) as Params
  return { algorithm: algorithm as Asked<O>['algorithm'], params }
}

/** @throws TypeError */
function toBytes(data: unknown, what = 'data'): Bytes {
  return bytesOf(data) ?? raise(`${what} must be a buffer or a view of one.`)
}

function toKey(value: unknown): CryptoKey {
  return isCryptoKey(value) ? value : raise('key must be a CryptoKey.')
}

function raise(message: string): never {
  throw new TypeError(message)
}

/** @throws DOMException `InvalidAccessError` */
function checkKey(key: KeyFacts, { algorithm }: AnyAsked, usage: Usage): void {
  if (key.algorithm.name !== algorithm.name) fail('InvalidAccessError', 'Key algorithm mismatch')
  if (!key.usages.includes(usage)) fail('InvalidAccessError', `Unable to use this key to ${usage}`)
}

const FORMATS = ['raw', 'spki', 'pkcs8', 'jwk']

function toFormat(value: unknown): KeyFormat {
  const format = toText(value)
  return FORMATS.includes(format) ? (format as KeyFormat) : raise(`There is no key format '${format}'.`)
}

function toKeyData(format: KeyFormat, given: unknown): KeyData {
  const bytes = bytesOf(given)
  if (format !== 'jwk') return { format, bytes: bytes ?? raise('The key is a buffer or a view of one.') }
  if (bytes !== undefined || typeof given !== 'object' || given === null) return raise('The key is a JsonWebKey.')
  return { format, jwk: { ...given } }
}

function bufferOf(bytes: Bytes): ArrayBuffer {
  const { buffer, byteLength } = bytes
  return buffer.byteLength === byteLength ? buffer : buffer.slice(bytes.byteOffset, bytes.byteOffset + byteLength)
}

function importWith(asked: Asked<'import'>, data: KeyData, extractable: boolean, usages: readonly Usage[]): CryptoKey {
  const key = asked.algorithm.import({ params: asked.params, data, extractable, usages })
  if (key.type !== 'public' && usages.length === 0) fail('SyntaxError', 'Usages cannot be empty when importing a key.')
  return key
}

function exportWith(key: CryptoKey, format: KeyFormat): ArrayBuffer | Record<string, unknown> {
  const facts = factsOfKey(key)
  const { algorithm } = find('export', facts.algorithm.name) ?? fail('NotSupportedError', 'The key cannot be exported')
  if (!facts.extractable) fail('InvalidAccessError', 'key is not extractable')
  const exported = algorithm.export(key, format)
  return exported instanceof Uint8Array ? bufferOf(exported) : exported
}

interface Wrapper {
  readonly asked: AnyAsked
  readonly run: (key: KeyFacts, data: Bytes) => Bytes
}

/** How a key encloses another: by an operation of its own, or as it encrypts anything. */
function wrapper(kind: 'wrap' | 'unwrap', given: unknown): Wrapper {
  const own = find(kind, given)
  if (own !== undefined) return { asked: own, run: (key, data) => own.algorithm[kind](own.params, key, data) }
  const text = kind === 'wrap' ? 'encrypt' : 'decrypt'
  const asked = ask(text, given)
  return { asked, run: (key, data) => asked.algorithm[text](asked.params, key, data) }
}

/**
 * `crypto.subtle` of the web (Web Cryptography API, section 14). All is done before a method returns its promise, so nothing that
 * it is given can change meanwhile; the CPU is on the bill of the entry that calls it.
 */
export class SubtleCrypto {
  constructor(token?: unknown) {
    if (token !== TOKEN) throw new TypeError('Illegal constructor')
  }

  async digest(algorithm: unknown, data: unknown): Promise<ArrayBuffer> {
    this.#check(arguments, 2)
    const asked = ask('digest', algorithm)
    return bufferOf(asked.algorithm.digest(asked.params, toBytes(data)))
  }

  async encrypt(algorithm: unknown, key: unknown, data: unknown): Promise<ArrayBuffer> {
    this.#check(arguments, 3)
    return runText('encrypt', algorithm, toKey(key), data)
  }

  async decrypt(algorithm: unknown, key: unknown, data: unknown): Promise<ArrayBuffer> {
    this.#check(arguments, 3)
    return runText('decrypt', algorithm, toKey(key), data)
  }

  async sign(algorithm: unknown, key: unknown, data: unknown): Promise<ArrayBuffer> {
    this.#check(arguments, 3)
    return runText('sign', algorithm, toKey(key), data)
  }

  async verify(algorithm: unknown, key: unknown, signature: unknown, data: unknown): Promise<boolean> {
    this.#check(arguments, 4)
    const asked = ask('verify', algorithm)
    const [given, bytes] = [toBytes(signature, 'signature'), toBytes(data)]
    const facts = factsOfKey(toKey(key))
    checkKey(facts, asked, 'verify')
    return asked.algorithm.verify(asked.params, facts, given, bytes)
  }

  async generateKey(algorithm: unknown, extractable: unknown, keyUsages: unknown): Promise<CryptoKey | KeyPair> {
    this.#check(arguments, 3)
    const asked = ask('generate', algorithm)
    const usages = toUsages(keyUsages)
    return asked.algorithm.generate({ params: asked.params, extractable: Boolean(extractable), usages })
  }

  async deriveBits(algorithm: unknown, baseKey: unknown, length: unknown = null): Promise<ArrayBuffer> {
    this.#check(arguments, 2)
    const asked = ask('deriveBits', algorithm)
    const facts = factsOfKey(toKey(baseKey))
    const bits = length === null ? null : toUnsigned(length, 'length')
    checkKey(facts, asked, 'deriveBits')
    return bufferOf(asked.algorithm.deriveBits(asked.params, facts, bits))
  }

  async deriveKey(
    algorithm: unknown,
    baseKey: unknown,
    derivedKeyAlgorithm: unknown,
    extractable: unknown,
    keyUsages: unknown,
  ): Promise<CryptoKey> {
    this.#check(arguments, 5)
    const asked = ask('deriveBits', algorithm)
    const made = ask('import', derivedKeyAlgorithm)
    const length = ask('keyLength', derivedKeyAlgorithm)
    const facts = factsOfKey(toKey(baseKey))
    const usages = toUsages(keyUsages)
    checkKey(facts, asked, 'deriveKey')
    const bits = length.algorithm.keyLength(length.params)
    const bytes = asked.algorithm.deriveBits(asked.params, facts, bits)
    return importWith(made, { format: 'raw', bytes }, Boolean(extractable), usages)
  }

  async importKey(
    format: unknown,
    keyData: unknown,
    algorithm: unknown,
    extractable: unknown,
    keyUsages: unknown,
  ): Promise<CryptoKey> {
    this.#check(arguments, 5)
    const data = toKeyData(toFormat(format), keyData)
    const usages = toUsages(keyUsages)
    return importWith(ask('import', algorithm), data, Boolean(extractable), usages)
  }

  async exportKey(format: unknown, key: unknown): Promise<ArrayBuffer | Record<string, unknown>> {
    this.#check(arguments, 2)
    const known = toFormat(format)
    return exportWith(toKey(key), known)
  }

  async wrapKey(format: unknown, key: unknown, wrappingKey: unknown, wrapAlgorithm: unknown): Promise<ArrayBuffer> {
    this.#check(arguments, 4)
    const known = toFormat(format)
    const [inner, outer] = [toKey(key), factsOfKey(toKey(wrappingKey))]
    const { asked, run } = wrapper('wrap', wrapAlgorithm)
    checkKey(outer, asked, 'wrapKey')
    const exported = exportWith(inner, known)
    const bytes = exported instanceof ArrayBuffer ? new Uint8Array(exported) : encodeUtf8(padded(JSON.stringify(exported), asked))
    return bufferOf(run(outer, bytes))
  }

  async unwrapKey(
    format: unknown,
    wrappedKey: unknown,
    unwrappingKey: unknown,
    unwrapAlgorithm: unknown,
    unwrappedKeyAlgorithm: unknown,
    extractable: unknown,
    keyUsages: unknown,
  ): Promise<CryptoKey> {
    this.#check(arguments, 7)
    const known = toFormat(format)
    const wrapped = toBytes(wrappedKey, 'wrappedKey')
    const outer = factsOfKey(toKey(unwrappingKey))
    const { asked, run } = wrapper('unwrap', unwrapAlgorithm)
    const inner = ask('import', unwrappedKeyAlgorithm)
    const usages = toUsages(keyUsages)
    checkKey(outer, asked, 'unwrapKey')
    const bytes = run(outer, wrapped)
    return importWith(inner, known === 'jwk' ? jwkOf(bytes) : { format: known, bytes }, Boolean(extractable), usages)
  }

  #check(given: IArguments, count: number): void {
    if (this !== subtle) throw new TypeError('Illegal invocation')
    if (given.length < count) throw new TypeError(`${count} arguments are needed, and ${given.length} given.`)
  }
}

/** AES-KW wraps whole blocks: blanks at the end mean nothing in JSON. */
function padded(json: string, { algorithm }: AnyAsked): string {
  return algorithm.name === 'AES-KW' ? json.padEnd(Math.ceil(json.length / 8) * 8) : json
}

function jwkOf(bytes: Bytes): KeyData {
  try {
    const jwk: unknown = JSON.parse(decodeUtf8(bytes))
    if (typeof jwk === 'object' && jwk !== null) return { format: 'jwk', jwk: jwk as Jwk }
  } catch {}
  return fail('DataError', 'Invalid wrapped JWK key')
}

function runText(kind: 'encrypt' | 'decrypt' | 'sign', algorithm: unknown, key: CryptoKey, data: unknown): ArrayBuffer {
  const asked = ask(kind, algorithm)
  const bytes = toBytes(data)
  const facts = factsOfKey(key)
  checkKey(facts, asked, kind)
  return bufferOf(asked.algorithm[kind](asked.params, facts, bytes))
}

const TOKEN = {}

export const subtle: SubtleCrypto = new SubtleCrypto(TOKEN)

Object.defineProperty(SubtleCrypto, 'length', { value: 0 })
