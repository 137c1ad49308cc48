import { natives } from '../natives.ts'
import { later } from '../../node/data.ts'
import { Cipheriv, createCipheriv, createDecipheriv, Decipheriv, getCipherInfo } from './cipher.ts'
import { hkdf, hkdfSync, pbkdf2, pbkdf2Sync, scrypt, scryptSync } from './derive.ts'
import { connectEnvironment, type Environment } from '../../node/environment.ts'
import { createECDH, curveOf, diffieHellman, ECDH, getCurves } from './exchange.ts'
import {
  createHash,
  createHmac,
  Hash,
  hash,
  Hmac,
  randomBytes,
  randomFill,
  randomFillSync,
  randomInt,
  timingSafeEqual,
} from './hash.ts'
import { createPrivateKey, createPublicKey, createSecretKey, keyPairMaker, KeyObject, newSecret } from './key-object.ts'
import {
  createSign,
  createVerify,
  privateDecrypt,
  privateEncrypt,
  publicDecrypt,
  publicEncrypt,
  Sign,
  sign,
  Verify,
  verify,
} from './sign.ts'

declare const crypto: { randomUUID(): string; getRandomValues<T>(array: T): T; readonly subtle: object }

const PROMISIFIED = Symbol.for('nodejs.util.promisify.custom')

function generateKeyPairSync(type: unknown, options?: object): object {
  return keyPairMaker(type, options, (name) => curveOf(name).name)()
}

function generateKeyPair(type: unknown, ...rest: unknown[]): void {
  const callback = rest.pop()
  const make = keyPairMaker(type, rest[0] as object | undefined, (name) => curveOf(name).name)
  const split = callback as (error: Error | null, publicKey?: unknown, privateKey?: unknown) => void
  later(
    typeof callback === 'function'
      ? (error: Error | null, pair?: { publicKey: unknown; privateKey: unknown }) =>
          error === null ? split(null, pair!.publicKey, pair!.privateKey) : split(error)
      : callback,
    make,
  )
}

Object.defineProperty(generateKeyPair, PROMISIFIED, {
  value: async (type: unknown, options?: object) => generateKeyPairSync(type, options),
})

function generateKeySync(type: unknown, options: object): KeyObject {
  return newSecret(type, options)
}

function generateKey(type: unknown, options: object, callback: unknown): void {
  later(callback, () => newSecret(type, options))
}

const CIPHERS = [128, 192, 256].flatMap((bits) =>
  ['cbc', 'cfb', 'cfb1', 'cfb8', 'ctr', 'ecb', 'gcm', 'ocb', 'ofb'].map((mode) => `aes-${bits}-${mode}`),
)
const OTHER_CIPHERS = ['aes128-wrap', 'aes192-wrap', 'aes256-wrap', 'chacha20', 'chacha20-poly1305', 'des-ede3-cbc']
// biome-ignore format: names
const HASHES = [
  'blake2b512', 'blake2s256', 'md5', 'ripemd160', 'sha1', 'sha224', 'sha256', 'sha3-224', 'sha3-256', 'sha3-384', 'sha3-512', 'sha384',
  'sha512', 'sha512-224', 'sha512-256', 'shake128', 'shake256',
]

/** Those that the methods here know. */
const constants = {
  RSA_PKCS1_PADDING: 1,
  RSA_NO_PADDING: 3,
  RSA_PKCS1_OAEP_PADDING: 4,
  RSA_PKCS1_PSS_PADDING: 6,
  RSA_PSS_SALTLEN_DIGEST: -1,
  RSA_PSS_SALTLEN_MAX_SIGN: -2,
  RSA_PSS_SALTLEN_AUTO: -2,
  POINT_CONVERSION_COMPRESSED: 2,
  POINT_CONVERSION_UNCOMPRESSED: 4,
  POINT_CONVERSION_HYBRID: 6,
  defaultCoreCipherList: '',
  TLS1_VERSION: 769,
  TLS1_1_VERSION: 770,
  TLS1_2_VERSION: 771,
  TLS1_3_VERSION: 772,
}

/** `node:crypto`, for a function whose bundle has the other modules. */
export function makeNodeModule(environment: Environment): object {
  connectEnvironment(environment)
  return {
    Cipheriv,
    createCipheriv,
    createDecipheriv,
    createECDH,
    createHash,
    createHmac,
    createPrivateKey,
    createPublicKey,
    createSecretKey,
    createSign,
    createVerify,
    constants,
    Decipheriv,
    diffieHellman,
    ECDH,
    generateKey,
    generateKeyPair,
    generateKeyPairSync,
    generateKeySync,
    getCipherInfo,
    getCiphers: () => [...CIPHERS, ...OTHER_CIPHERS].toSorted(),
    getCurves,
    getFips: () => 0,
    getHashes: () => HASHES.filter((name) => natives.hashInfo(name) !== undefined),
    getRandomValues: <T>(array: T): T => crypto.getRandomValues(array),
    Hash,
    hash,
    hkdf,
    hkdfSync,
    Hmac,
    KeyObject,
    pbkdf2,
    pbkdf2Sync,
    privateDecrypt,
    privateEncrypt,
    pseudoRandomBytes: randomBytes,
    publicDecrypt,
    publicEncrypt,
    randomBytes,
    randomFill,
    randomFillSync,
    randomInt,
    randomUUID: () => crypto.randomUUID(),
    scrypt,
    scryptSync,
    Sign,
    sign,
    subtle: crypto.subtle,
    timingSafeEqual,
    Verify,
    verify,
    webcrypto: crypto,
  }
}
