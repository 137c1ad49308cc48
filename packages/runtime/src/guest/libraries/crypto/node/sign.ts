import type { AsymmetricKey } from '../asymmetric-key.ts'
import { type Bytes, bytesOf, NO_BYTES } from '../../node/bytes.ts'
import { digest, feed } from '../derivation.ts'
import { CONVERSIONS, type Handle, natives } from '../natives.ts'
import { derFromPlain, PADDINGS, plainFromDer } from '../signatures.ts'
import { encoded, later, raise, toBuffer, toBytes } from '../../node/data.ts'
import type { NodeBuffer } from '../../node/environment.ts'
import { invalidType, invalidValue, native, nodeError } from '../../node/errors.ts'
import { checkDigest, digestName } from './hash.ts'
import { asymmetricOf } from './key-object.ts'
import { streamAtUse } from '../../node/lazy-stream.ts'

interface SignOptions {
  readonly padding?: number
  readonly saltLength?: number
  readonly dsaEncoding?: string
}

/** `RSA_PSS_SALTLEN_MAX_SIGN` and `RSA_PSS_SALTLEN_AUTO`. */
const LONGEST_SALT = -2

function optionsOf(key: unknown): SignOptions {
  const given = (typeof key === 'object' && key !== null ? key : {}) as SignOptions
  const { padding, saltLength, dsaEncoding } = given
  if (dsaEncoding !== undefined && dsaEncoding !== 'der' && dsaEncoding !== 'ieee-p1363') {
    throw invalidValue('options.dsaEncoding', dsaEncoding)
  }
  return {
    ...(padding !== undefined && { padding }),
    ...(saltLength !== undefined && { saltLength }),
    ...(dsaEncoding !== undefined && { dsaEncoding }),
  }
}

function saltOf(key: AsymmetricKey, { padding, saltLength }: SignOptions): number | undefined {
  return saltLength ?? (key.kind === 'rsa' && padding === PADDINGS.pss ? LONGEST_SALT : undefined)
}

function isPlain(key: AsymmetricKey, { dsaEncoding }: SignOptions): boolean {
  return key.kind === 'ec' && dsaEncoding === 'ieee-p1363'
}

function signDigest(key: AsymmetricKey, name: string | undefined, data: Bytes, options: SignOptions): Bytes {
  const { handle } = key
  const made = native(() => natives.sign(handle, name, data, options.padding, saltOf(key, options), undefined))
  const signature = new Uint8Array(made)
  return isPlain(key, options) ? plainFromDer(key, signature) : signature
}

interface Verified {
  readonly name: string | undefined
  readonly data: Bytes
  readonly signature: Bytes
}

function verifyDigest(key: AsymmetricKey, { name, data, signature }: Verified, options: SignOptions): boolean {
  const der = isPlain(key, options) ? derFromPlain(key, signature) : signature
  if (der === undefined) return false
  const salt = saltOf(key, options)
  return native(() => natives.verify(key.handle, name, data, options.padding, salt, undefined, der))
}

function signsWhole(key: AsymmetricKey): boolean {
  return key.kind === 'ed25519' || key.kind === 'ed448'
}

/** What is signed of a whole text: its digest, or where the key does that by itself the text. */
function subject(key: AsymmetricKey, algorithm: unknown, data: Bytes): { name: string | undefined; data: Bytes } {
  const isDefault = algorithm === null || algorithm === undefined
  if (!isDefault) checkDigest(algorithm)
  if (signsWhole(key)) {
    if (!isDefault) throw nodeError('ERR_OSSL_EVP_INVALID_DIGEST', 'error:1C8000B2:Provider routines::invalid digest')
    return { name: undefined, data }
  }
  const name = isDefault ? 'sha256' : checkDigest(algorithm)
  return { name, data: digest(name, data) }
}

export function sign(algorithm: unknown, data: unknown, key: unknown, callback?: unknown): NodeBuffer | void {
  const bytes = toBytes(data)
  const work = (): NodeBuffer => {
    const known = asymmetricOf(key, 'private')
    const signed = subject(known, algorithm, bytes)
    return toBuffer(signDigest(known, signed.name, signed.data, optionsOf(key)))
  }
  if (callback === undefined) return work()
  later(callback, work)
}

export function verify(algorithm: unknown, data: unknown, key: unknown, signature: unknown, callback?: unknown): boolean | void {
  const [bytes, given] = [
    toBytes(data),
    bytesOf(signature) ?? raise(invalidType('signature', 'an instance of Buffer', signature)),
  ]
  const work = (): boolean => {
    const known = asymmetricOf(key, 'public')
    return verifyDigest(known, { ...subject(known, algorithm, bytes), signature: given }, optionsOf(key))
  }
  if (callback === undefined) return work()
  later(callback, work)
}

/** What goes into a signature, piece by piece. */
class Signed {
  readonly #name: string
  readonly #hash: Handle
  #hasEnded = false

  constructor(algorithm: unknown) {
    if (typeof algorithm !== 'string') throw invalidType('algorithm', 'of type string', algorithm)
    this.#name = digestName(algorithm)
    const hash = natives.hashNew(this.#name, undefined)
    if (hash === undefined) throw nodeError('ERR_CRYPTO_INVALID_DIGEST', `Invalid digest: ${algorithm}`, TypeError)
    this.#hash = hash
  }

  update(data: unknown, encoding?: unknown): this {
    const bytes = toBytes(data, 'data', encoding)
    if (this.#hasEnded) throw nodeError('ERR_CRYPTO_SIGN_KEY_REQUIRED', 'Not initialised')
    feed(this.#hash, bytes)
    return this
  }

  protected finish(): { readonly name: string; readonly data: Bytes } {
    if (this.#hasEnded) throw nodeError('ERR_CRYPTO_SIGN_KEY_REQUIRED', 'Not initialised')
    this.#hasEnded = true
    return { name: this.#name, data: new Uint8Array(natives.hashDigest(this.#hash)) }
  }
}

export class Sign extends Signed {
  sign(key: unknown, outputEncoding?: unknown): NodeBuffer | string {
    if (key === undefined || key === null) throw nodeError('ERR_CRYPTO_SIGN_KEY_REQUIRED', 'No key provided to sign')
    const known = asymmetricOf(key, 'private')
    const { name, data } = this.finish()
    return encoded(signDigest(known, name, data, optionsOf(key)), outputEncoding)
  }
}

export class Verify extends Signed {
  verify(key: unknown, signature: unknown, signatureEncoding?: unknown): boolean {
    const known = asymmetricOf(key, 'public')
    const given = toBytes(signature, 'signature', signatureEncoding)
    return verifyDigest(known, { ...this.finish(), signature: given }, optionsOf(key))
  }
}

function writable(self: Signed): object {
  return {
    write(chunk: unknown, encoding: unknown, done: (error?: unknown) => void) {
      try {
        self.update(chunk, encoding)
      } catch (error) {
        return done(error)
      }
      done()
    },
  }
}

streamAtUse(Signed, 'Writable', writable)

export function createSign(algorithm: unknown): Sign {
  return new Sign(algorithm)
}

export function createVerify(algorithm: unknown): Verify {
  return new Verify(algorithm)
}

interface ConvertOptions {
  readonly padding?: number
  readonly oaepHash?: string
  readonly oaepLabel?: unknown
  readonly encoding?: string
}

function converter(how: keyof typeof CONVERSIONS, half: 'private' | 'public', usual: number) {
  return (key: unknown, buffer: unknown): NodeBuffer => {
    const given = (typeof key === 'object' && key !== null ? key : {}) as ConvertOptions
    const known = asymmetricOf(key, half)
    const { padding = usual, oaepHash = 'sha1', oaepLabel } = given
    const data = toBytes(buffer, 'buffer', given.encoding)
    const label = oaepLabel === undefined ? NO_BYTES : toBytes(oaepLabel, 'key.oaepLabel', given.encoding)
    const hash = padding === PADDINGS.oaep ? checkDigest(oaepHash) : undefined
    return toBuffer(native(() => natives.convert(CONVERSIONS[how], known.handle, data, padding, hash, label)))
  }
}

export const publicEncrypt = converter('publicEncrypt', 'public', PADDINGS.oaep)
export const privateDecrypt = converter('privateDecrypt', 'private', PADDINGS.oaep)
export const privateEncrypt = converter('privateEncrypt', 'private', PADDINGS.pkcs1)
export const publicDecrypt = converter('publicDecrypt', 'public', PADDINGS.pkcs1)
