import { digestSizes, hkdf as hkdfBytes, pbkdf2 as pbkdf2Bytes, scrypt as scryptBytes } from '../derivation.ts'
import { later, toBuffer, toBytes, toInteger } from '../../node/data.ts'
import type { NodeBuffer } from '../../node/environment.ts'
import { invalidType, native, nodeError } from '../../node/errors.ts'
import { checkDigest } from './hash.ts'
import { secretOf } from './key-object.ts'

function pbkdf2Work(password: unknown, salt: unknown, iterations: unknown, keylen: unknown, digest: unknown): () => NodeBuffer {
  if (typeof digest !== 'string') throw invalidType('digest', 'of type string', digest)
  const [secret, saltBytes] = [toBytes(password, 'password'), toBytes(salt, 'salt')]
  const [count, size] = [toInteger(iterations, 'iterations', 1), toInteger(keylen, 'keylen')]
  const name = checkDigest(digest)
  return () => toBuffer(native(() => pbkdf2Bytes(name, secret, saltBytes, count, size)))
}

type Args5 = [unknown, unknown, unknown, unknown, unknown]

export function pbkdf2(...args: [...Args5, unknown]): void {
  if (typeof args[4] === 'function') throw invalidType('digest', 'of type string', args[4])
  const work = pbkdf2Work(args[0], args[1], args[2], args[3], args[4])
  later(args[5], work)
}

export function pbkdf2Sync(...args: Args5): NodeBuffer {
  return pbkdf2Work(...args)()
}

function hkdfWork(digest: unknown, key: unknown, salt: unknown, info: unknown, keylen: unknown): () => ArrayBuffer {
  const name = checkDigest(digest)
  const [secret, saltBytes, infoBytes] = [secretOf(key, 'ikm'), toBytes(salt, 'salt'), toBytes(info, 'info')]
  if (infoBytes.length > 1024) {
    const message = `The value of "info" is out of range. It must be must not contain more than 1024 bytes. Received ${infoBytes.length}`
    throw nodeError('ERR_OUT_OF_RANGE', message, RangeError)
  }
  const size = toInteger(keylen, 'length')
  if (size > 255 * digestSizes(name)!.size) throw nodeError('ERR_CRYPTO_INVALID_KEYLEN', 'Invalid key length', RangeError)
  return () => native(() => hkdfBytes(name, secret, saltBytes, infoBytes, size).buffer)
}

export function hkdf(...args: [...Args5, unknown]): void {
  const work = hkdfWork(args[0], args[1], args[2], args[3], args[4])
  later(args[5], work)
}

export function hkdfSync(...args: Args5): ArrayBuffer {
  return hkdfWork(...args)()
}

interface ScryptOptions {
  readonly [name: string]: number | undefined
}

const MOST_SCRYPT_MEMORY = 32 * 1024 * 1024

function scryptWork(password: unknown, salt: unknown, keylen: unknown, options: ScryptOptions = {}): () => NodeBuffer {
  const [secret, saltBytes, size] = [toBytes(password, 'password'), toBytes(salt, 'salt'), toInteger(keylen, 'keylen')]
  const n = toInteger(options['N'] ?? options['cost'] ?? 16_384, 'N', 0, 2 ** 32 - 1)
  const r = toInteger(options['r'] ?? options['blockSize'] ?? 8, 'r', 0, 2 ** 32 - 1)
  const p = toInteger(options['p'] ?? options['parallelization'] ?? 1, 'p', 0, 2 ** 32 - 1)
  const most = toInteger(options['maxmem'] ?? MOST_SCRYPT_MEMORY, 'maxmem', 0, Number.MAX_SAFE_INTEGER)
  const refuse = (why: string): never => {
    throw nodeError('ERR_CRYPTO_INVALID_SCRYPT_PARAMS', `Invalid scrypt params${why}`, RangeError)
  }
  if (n < 2 || 2 ** Math.round(Math.log2(n)) !== n || r < 1 || p < 1 || p * r >= 2 ** 30) refuse('')
  if (128 * (n + p) * r + 32 * r * 4 > most) refuse(': memory limit exceeded')
  if (r > 1024) refuse(': r is 1024 at most')
  return () => toBuffer(native(() => scryptBytes(secret, saltBytes, { n, r, p }, size)))
}

export function scrypt(password: unknown, salt: unknown, keylen: unknown, options: unknown, callback?: unknown): void {
  const isShort = typeof options === 'function'
  later(isShort ? options : callback, scryptWork(password, salt, keylen, isShort ? {} : (options as ScryptOptions)))
}

export function scryptSync(password: unknown, salt: unknown, keylen: unknown, options?: ScryptOptions): NodeBuffer {
  return scryptWork(password, salt, keylen, options)()
}
