import { type Bytes, bytesOf } from '../../node/bytes.ts'
import { digestSizes, feed, newHmac } from '../derivation.ts'
import { type Handle, natives } from '../natives.ts'
import { encoded, later, raise, toBytes, toInteger } from '../../node/data.ts'
import type { NodeBuffer } from '../../node/environment.ts'
import { invalidType, native, nodeError } from '../../node/errors.ts'
import { secretOf } from './key-object.ts'
import { streamAtUse } from '../../node/lazy-stream.ts'
import { fillRandom } from '../../../web-api/host.ts'

/** OpenSSL's name of a digest, which Node.js knows by a few more. */
export function digestName(name: string): string {
  return name.replace(/^rsa-/i, '')
}

/** @throws TypeError */
export function checkDigest(name: unknown): string {
  if (typeof name !== 'string') throw invalidType('digest', 'of type string', name)
  const known = digestName(name)
  if (natives.hashInfo(known) === undefined) {
    throw nodeError('ERR_CRYPTO_INVALID_DIGEST', `Invalid digest: ${name}`, TypeError)
  }
  return known
}

interface HashOptions {
  readonly outputLength?: number
}

class Digester {
  handle: Handle
  /** Whether somebody has asked for the digest. */
  hasEnded = false
  #result: ArrayBuffer | undefined
  readonly outputLength: number | undefined

  constructor(handle: Handle, outputLength?: number) {
    this.handle = handle
    this.outputLength = outputLength
  }

  update(data: unknown, encoding: unknown): void {
    const bytes = toBytes(data, 'data', encoding)
    if (this.hasEnded) throw nodeError('ERR_CRYPTO_HASH_FINALIZED', 'Digest already called')
    if (this.#result !== undefined) throw nodeError('ERR_CRYPTO_HASH_UPDATE_FAILED', 'Hash update failed')
    native(() => feed(this.handle, bytes))
  }

  digest(): ArrayBuffer {
    this.hasEnded = true
    return this.result()
  }

  /** The digest, after which nothing more is taken. */
  result(): ArrayBuffer {
    this.#result ??= native(() => natives.hashDigest(this.handle, this.outputLength))
    return this.#result
  }
}

let digesterOf: (hash: Hash) => Digester

/** SHAKE has no length of its own. */
const SHAKE_BYTES: Readonly<Record<string, number>> = { shake128: 16, shake256: 32 }

function newDigester(algorithm: unknown, options: HashOptions | undefined): Digester {
  if (typeof algorithm !== 'string') throw invalidType('algorithm', 'of type string', algorithm)
  const name = digestName(algorithm)
  const handle = natives.hashNew(name, undefined)
  if (handle === undefined) throw nodeError('ERR_OSSL_EVP_UNSUPPORTED', 'Digest method not supported')
  const shake = SHAKE_BYTES[name.toLowerCase()]
  const given = options?.outputLength === undefined ? shake : toInteger(options.outputLength, 'options.outputLength')
  if (given !== undefined && shake === undefined && given !== digestSizes(name)!.size) {
    throw nodeError('ERR_OSSL_EVP_NOT_XOF_OR_INVALID_LENGTH', 'Unsupported state or invalid output length')
  }
  return new Digester(handle, given)
}

export class Hash {
  readonly #digester: Digester

  constructor(algorithm: unknown, options?: HashOptions) {
    this.#digester = algorithm instanceof Digester ? algorithm : newDigester(algorithm, options)
  }

  update(data: unknown, inputEncoding?: unknown): this {
    this.#digester.update(data, inputEncoding)
    return this
  }

  digest(outputEncoding?: unknown): NodeBuffer | string {
    if (this.#digester.hasEnded) throw nodeError('ERR_CRYPTO_HASH_FINALIZED', 'Digest already called')
    return encoded(this.#digester.digest(), outputEncoding)
  }

  copy(options?: HashOptions): Hash {
    const { handle, hasEnded, outputLength } = this.#digester
    if (hasEnded) throw nodeError('ERR_CRYPTO_HASH_FINALIZED', 'Digest already called')
    return new Hash(new Digester(natives.hashCopy(handle), options?.outputLength ?? outputLength))
  }

  static {
    digesterOf = (hash) => hash.#digester
  }
}

export class Hmac {
  readonly #digester: Digester

  constructor(name: unknown, key: unknown) {
    if (typeof name !== 'string') throw invalidType('hmac', 'of type string', name)
    this.#digester = new Digester(native(() => newHmac(checkDigest(name), secretOf(key, 'key'))))
  }

  update(data: unknown, inputEncoding?: unknown): this {
    this.#digester.update(data, inputEncoding)
    return this
  }

  digest(outputEncoding?: unknown): NodeBuffer | string {
    // Node.js gives nothing the second time.
    return encoded(this.#digester.hasEnded ? new ArrayBuffer(0) : this.#digester.digest(), outputEncoding)
  }
}

interface Pushing {
  push(chunk: unknown): void
  update(data: unknown, encoding?: unknown): unknown
  digest(): NodeBuffer | string
}

type Done = (error?: Error | null) => void

function transform(self: Pushing, digest = (): NodeBuffer | string => self.digest()): object {
  const attempt = (done: Done, run: () => void): void => {
    try {
      run()
    } catch (error) {
      return done(error as Error)
    }
    done()
  }
  return {
    transform: (chunk: unknown, encoding: unknown, done: Done) => attempt(done, () => void self.update(chunk, encoding)),
    flush: (done: Done) => attempt(done, () => self.push(digest())),
  }
}

// Who has piped something into a hash may still ask for its digest.
streamAtUse(Hash, 'Transform', (self: Hash & Pushing) =>
  transform(self, () => encoded(digesterOf(self).result().slice(0), undefined)),
)
streamAtUse(Hmac, 'Transform', (self: Hmac & Pushing) => transform(self))

/** All at once: `crypto.hash`. */
export function hash(algorithm: unknown, data: unknown, options: unknown = 'hex'): NodeBuffer | string {
  const { outputEncoding = 'hex', outputLength } = (
    typeof options === 'object' && options !== null ? options : { outputEncoding: options }
  ) as { outputEncoding?: unknown; outputLength?: number }
  const digester = digesterOf(new Hash(algorithm, outputLength === undefined ? undefined : { outputLength }))
  digester.update(data, undefined)
  return encoded(digester.digest(), outputEncoding)
}

export function createHash(algorithm: unknown, options?: HashOptions): Hash {
  return new Hash(algorithm, options)
}

export function createHmac(name: unknown, key: unknown): Hmac {
  return new Hmac(name, key)
}

export function timingSafeEqual(one: unknown, other: unknown): boolean {
  const first = bytesOf(one) ?? raise(invalidType('buf1', 'an instance of ArrayBuffer, Buffer, TypedArray, or DataView', one))
  const second =
    bytesOf(other) ?? raise(invalidType('buf2', 'an instance of ArrayBuffer, Buffer, TypedArray, or DataView', other))
  if (first.length !== second.length) {
    const message = 'Input buffers must have the same byte length'
    throw nodeError('ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH', message, RangeError)
  }
  return natives.equal(first, second)
}

export function randomBytes(size: unknown, callback?: unknown): NodeBuffer | string | void {
  const bytes: Bytes = new Uint8Array(toInteger(size, 'size'))
  if (callback === undefined) {
    fillRandom(bytes)
    return encoded(bytes, undefined)
  }
  later(callback, () => {
    fillRandom(bytes)
    return encoded(bytes, undefined)
  })
}

function partToFill(buffer: unknown, offset: unknown, size: unknown): Uint8Array {
  const bytes =
    bytesOf(buffer) ?? raise(invalidType('buf', 'an instance of ArrayBuffer, Buffer, TypedArray, or DataView', buffer))
  const unit = (buffer as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT ?? 1
  const start = offset === undefined ? 0 : toInteger(offset, 'offset', 0, bytes.length / unit) * unit
  const count = size === undefined ? bytes.length - start : toInteger(size, 'size', 0, (bytes.length - start) / unit) * unit
  return bytes.subarray(start, start + count)
}

export function randomFillSync<T>(buffer: T, offset?: unknown, size?: unknown): T {
  fillRandom(partToFill(buffer, offset, size))
  return buffer
}

export function randomFill(buffer: unknown, ...rest: unknown[]): void {
  const callback = rest.pop()
  const part = partToFill(buffer, rest[0], rest[1])
  later(callback, () => {
    fillRandom(part)
    return buffer
  })
}

const INTEGER_BYTES = 6
const INTEGER_RANGE = 2 ** (8 * INTEGER_BYTES)

/** Each number as often as another: those above the last whole range are drawn again. */
function drawInteger(min: number, max: number): number {
  const range = max - min
  const limit = INTEGER_RANGE - (INTEGER_RANGE % range)
  const bytes = new Uint8Array(INTEGER_BYTES)
  for (;;) {
    fillRandom(bytes)
    const value = bytes.reduce((number, byte) => number * 256 + byte, 0)
    if (value < limit) return min + (value % range)
  }
}

export function randomInt(...args: unknown[]): number | void {
  const callback = typeof args.at(-1) === 'function' ? args.pop() : undefined
  const [min, max] = args.length < 2 ? [0, args[0]] : args
  if (!Number.isSafeInteger(min)) throw invalidType('min', 'a safe integer', min)
  if (!Number.isSafeInteger(max)) throw invalidType('max', 'a safe integer', max)
  const [from, to] = [min as number, max as number]
  const refuse = (name: string, range: string, value: number): never => {
    const message = `The value of "${name}" is out of range. It must be ${range}. Received ${value}`
    throw nodeError('ERR_OUT_OF_RANGE', message, RangeError)
  }
  if (to <= from) refuse('max', `greater than the value of "min" (${from})`, to)
  if (to - from >= INTEGER_RANGE) refuse(args.length < 2 ? 'max' : 'max - min', `<= ${INTEGER_RANGE - 1}`, to - from)
  if (callback === undefined) return drawInteger(from, to)
  later(callback, () => drawInteger(from, to))
}
