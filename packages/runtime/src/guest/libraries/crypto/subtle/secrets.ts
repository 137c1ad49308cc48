import { type Bytes, toBase64Url } from '../../node/bytes.ts'
import { digest, digestSizes, hkdf, hmac, pbkdf2 } from '../derivation.ts'
import { natives } from '../natives.ts'
import { fail } from '../fail.ts'
import { fillRandom } from '../../../web-api/host.ts'
import { bytesOfSecret } from './aes.ts'
import {
  type Algorithm,
  checkJwk,
  checkUsages,
  type Digest,
  DIGESTS,
  hashOf,
  jwkRest,
  optionalNumber,
  type Params,
  requiredBytes,
  requiredHash,
  requiredNumber,
} from './algorithm.ts'
import { factsOfKey, makeKey, type KeyFacts } from './crypto-key.ts'

export const DIGEST_ALGORITHMS: readonly Algorithm[] = DIGESTS.map(({ name, native }) => ({
  name,
  digest: (_params, data) => digest(native, data),
}))

function secretOf(key: KeyFacts): Bytes {
  return key.material as Bytes
}

/** The length of an HMAC key in bits: that of a block, or what is asked for. */
function hmacLength(params: Params, hash: Digest): number {
  const length = optionalNumber(params, 'length')
  if (length === 0) fail('OperationError', 'Zero-length key is not supported')
  return length ?? digestSizes(hash.native)!.block * 8
}

/** Keys of whole bytes only, as Node.js has them. */
function isWhole(bits: number): boolean {
  return bits % 8 === 0
}

const hmacAlgorithm: Algorithm = {
  name: 'HMAC',
  sign: (_params, key, data) => hmac(hashOf(key).native, secretOf(key), data),
  verify: (_params, key, signature, data) => {
    const right = hmac(hashOf(key).native, secretOf(key), data)
    return right.length === signature.length && natives.equal(right, signature)
  },
  keyLength: (params) => hmacLength(params, requiredHash(params)),
  generate({ params, extractable, usages }) {
    const hash = requiredHash(params)
    const length = hmacLength(params, hash)
    checkUsages(usages, 'sign', 'verify')
    if (usages.length === 0) fail('SyntaxError', 'Usages cannot be empty when creating a key.')
    if (!isWhole(length)) fail('NotSupportedError', 'Unsupported algorithm.length')
    const material = new Uint8Array(length / 8)
    fillRandom(material)
    return makeKey({ algorithm: { name: 'HMAC', length, hash: { name: hash.name } }, extractable, usages, material })
  },
  import(request) {
    const { params, usages, extractable, data } = request
    const hash = requiredHash(params)
    checkUsages(usages, 'sign', 'verify')
    const material = bytesOfSecret(data)
    if (data.format === 'jwk') {
      checkJwk(data.jwk, { kty: 'oct', use: 'sig', alg: hash.suffix === '' ? undefined : `HS${hash.suffix}` }, request)
    }
    const bits = material.length * 8
    if (bits === 0) fail('DataError', 'Zero-length key is not supported')
    const length = optionalNumber(params, 'length')
    if (length !== undefined && length !== bits) {
      if (length > bits || length <= bits - 8) fail('DataError', 'Invalid key length')
      fail('NotSupportedError', 'Unsupported algorithm.length')
    }
    return makeKey({ algorithm: { name: 'HMAC', length: bits, hash: { name: hash.name } }, extractable, usages, material })
  },
  export(key, format) {
    const facts = factsOfKey(key)
    if (format === 'raw') return secretOf(facts).slice()
    if (format !== 'jwk') fail('NotSupportedError', `Unable to export a secret key using ${format} format`)
    const { suffix } = hashOf(facts)
    return { kty: 'oct', k: toBase64Url(secretOf(facts)), ...(suffix !== '' && { alg: `HS${suffix}` }), ...jwkRest(key) }
  },
}

/** Keys that others are derived from: of any length, and never to be exported. */
function sourceKeys(name: string): Algorithm {
  return {
    name,
    keyLength: () => null,
    import({ data, extractable, usages }) {
      if (data.format !== 'raw') fail('NotSupportedError', `Unable to import ${name} using ${data.format} format`)
      checkUsages(usages, 'deriveKey', 'deriveBits')
      if (extractable) fail('SyntaxError', `${name} keys are not extractable`)
      return makeKey({ algorithm: { name }, extractable, usages, material: data.bytes.slice() })
    },
  }
}

/** @throws DOMException `OperationError` */
function wholeBytes(bits: number | null): number {
  if (bits === null) return fail('OperationError', 'length cannot be null')
  if (!isWhole(bits)) fail('OperationError', 'length must be a multiple of 8')
  return bits / 8
}

const HKDF: Algorithm = {
  ...sourceKeys('HKDF'),
  deriveBits(params, key, bits) {
    const hash = requiredHash(params)
    const [salt, info] = [requiredBytes(params, 'salt'), requiredBytes(params, 'info')]
    const size = wholeBytes(bits)
    if (size > 255 * digestSizes(hash.native)!.size) fail('OperationError', 'length is too large')
    return hkdf(hash.native, secretOf(key), salt, info, size)
  },
}

const PBKDF2: Algorithm = {
  ...sourceKeys('PBKDF2'),
  deriveBits(params, key, bits) {
    const hash = requiredHash(params)
    const salt = requiredBytes(params, 'salt')
    const iterations = requiredNumber(params, 'iterations')
    const size = wholeBytes(bits)
    if (iterations === 0) fail('OperationError', 'iterations cannot be zero')
    return pbkdf2(hash.native, secretOf(key), salt, iterations, size)
  },
}

export const SECRETS: readonly Algorithm[] = [hmacAlgorithm, HKDF, PBKDF2]
