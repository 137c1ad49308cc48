import { type Bytes, concat, fromBase64Url, toBase64Url } from '../../node/bytes.ts'
import { runCipher, seal, unseal } from '../ciphers.ts'
import { attempt, fail } from '../fail.ts'
import { fillRandom } from '../../../web-api/host.ts'
import {
  type Algorithm,
  checkJwk,
  checkUsages,
  jwkRest,
  type KeyData,
  optionalBytes,
  optionalNumber,
  type Params,
  requiredBytes,
  requiredNumber,
} from './algorithm.ts'
import { factsOfKey, makeKey, type KeyFacts, type Usage } from './crypto-key.ts'

const LENGTHS = [128, 192, 256]
const TAG_BITS = [32, 64, 96, 104, 112, 120, 128]
const BLOCK_BYTES = 16

function secretOf(key: KeyFacts): Bytes {
  return key.material as Bytes
}

function keyLength(params: Params): number {
  const length = requiredNumber(params, 'length', 16)
  if (!LENGTHS.includes(length)) fail('OperationError', 'Invalid key length')
  return length
}

/** What the modes have in common: their keys. */
function keysOf(name: string, usages: readonly Usage[]): Algorithm {
  return {
    name,
    keyLength,
    generate({ params, extractable, usages: given }) {
      const length = keyLength(params)
      checkUsages(given, ...usages)
      if (given.length === 0) fail('SyntaxError', 'Usages cannot be empty when creating a key.')
      const material = new Uint8Array(length / 8)
      fillRandom(material)
      return makeKey({ algorithm: { name, length }, extractable, usages: given, material })
    },
    import(request) {
      checkUsages(request.usages, ...usages)
      const material = bytesOfSecret(request.data)
      const length = material.length * 8
      if (!LENGTHS.includes(length)) fail('DataError', 'Invalid key length')
      if (request.data.format === 'jwk') {
        checkJwk(request.data.jwk, { kty: 'oct', use: 'enc', alg: `A${length}${name.slice(4)}` }, request)
      }
      return makeKey({ algorithm: { name, length }, extractable: request.extractable, usages: request.usages, material })
    },
    export(key, format) {
      const material = secretOf(factsOfKey(key))
      if (format === 'raw') return material.slice()
      if (format !== 'jwk') fail('NotSupportedError', `Unable to export a secret key using ${format} format`)
      return { kty: 'oct', k: toBase64Url(material), alg: `A${material.length * 8}${name.slice(4)}`, ...jwkRest(key) }
    },
  }
}

/** @throws DOMException `DataError`, `NotSupportedError` */
export function bytesOfSecret(data: KeyData): Bytes {
  if (data.format === 'raw') return data.bytes.slice()
  if (data.format !== 'jwk') fail('NotSupportedError', `Unable to import a secret key using ${data.format} format`)
  const { k, kty } = data.jwk
  const bytes = typeof k === 'string' && kty === 'oct' ? fromBase64Url(k) : undefined
  return bytes ?? fail('DataError', 'Invalid JWK')
}

function cipherName(key: KeyFacts, mode: string): string {
  return `aes-${secretOf(key).length * 8}-${mode}`
}

const TEXT_USAGES = ['encrypt', 'decrypt', 'wrapKey', 'unwrapKey'] as const

function gcm(params: Params, key: KeyFacts, data: Bytes) {
  const tagBits = optionalNumber(params, 'tagLength', 8) ?? 128
  const iv = requiredBytes(params, 'iv')
  const aad = optionalBytes(params, 'additionalData')
  if (!TAG_BITS.includes(tagBits)) fail('OperationError', `${tagBits} is not a valid AES-GCM tag length`)
  return { name: cipherName(key, 'gcm'), key: secretOf(key), iv, aad, data, tagBytes: tagBits / 8 }
}

const aesGcm: Algorithm = {
  ...keysOf('AES-GCM', TEXT_USAGES),
  encrypt: (params, key, data) => {
    const request = gcm(params, key, data)
    return attempt(() => seal(request))
  },
  decrypt: (params, key, data) => {
    const request = gcm(params, key, data)
    if (data.length < request.tagBytes) fail('OperationError', 'The provided data is too small.')
    return attempt(() => unseal(request))
  },
}

function runCbc(encrypts: boolean, params: Params, key: KeyFacts, data: Bytes): Bytes {
  const iv = requiredBytes(params, 'iv')
  if (iv.length !== BLOCK_BYTES) fail('OperationError', 'algorithm.iv must contain exactly 16 bytes')
  return attempt(() => runCipher(encrypts, { name: cipherName(key, 'cbc'), key: secretOf(key), iv, data }))
}

const aesCbc: Algorithm = {
  ...keysOf('AES-CBC', TEXT_USAGES),
  encrypt: (params, key, data) => runCbc(true, params, key, data),
  decrypt: (params, key, data) => runCbc(false, params, key, data),
}

/** OpenSSL counts with all 128 bits; where fewer are the counter, it begins anew at 0 when they overflow. */
function ctr(params: Params, key: KeyFacts, data: Bytes): Bytes {
  const counter = requiredBytes(params, 'counter')
  const bits = requiredNumber(params, 'length', 8)
  if (counter.length !== BLOCK_BYTES) fail('OperationError', 'algorithm.counter must contain exactly 16 bytes')
  if (bits === 0 || bits > 128) fail('OperationError', 'AES-CTR algorithm.length must be between 1 and 128')
  const start = BigInt(`0x${counter.toHex()}`)
  const count = 1n << BigInt(bits)
  const blocks = BigInt(Math.ceil(data.length / BLOCK_BYTES))
  if (blocks > count) fail('OperationError', 'The data is longer than the counter counts.')
  const left = count - (start % count)
  const run = (iv: Bytes, part: Bytes): Bytes =>
    attempt(() => runCipher(true, { name: cipherName(key, 'ctr'), key: secretOf(key), iv, data: part }))
  if (blocks <= left) return run(counter, data)
  const again = Uint8Array.fromHex((start - (start % count)).toString(16).padStart(32, '0'))
  const split = Number(left) * BLOCK_BYTES
  return concat(run(counter, data.subarray(0, split)), run(again, data.subarray(split)))
}

const aesCtr: Algorithm = { ...keysOf('AES-CTR', TEXT_USAGES), encrypt: ctr, decrypt: ctr }

/** RFC 3394, section 2.2.3.1. */
const WRAP_IV = new Uint8Array(8).fill(0xa6)

function wrap(encrypts: boolean, key: KeyFacts, data: Bytes): Bytes {
  if (data.length % 8 !== 0) fail('OperationError', 'A key is wrapped in multiples of 8 bytes.')
  return attempt(() => runCipher(encrypts, { name: cipherName(key, 'wrap'), key: secretOf(key), iv: WRAP_IV, data }))
}

const aesKw: Algorithm = {
  ...keysOf('AES-KW', ['wrapKey', 'unwrapKey']),
  wrap: (_params, key, data) => wrap(true, key, data),
  unwrap: (_params, key, data) => wrap(false, key, data),
}

export const AES: readonly Algorithm[] = [aesGcm, aesCbc, aesCtr, aesKw]
