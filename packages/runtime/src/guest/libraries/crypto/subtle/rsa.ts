import { AsymmetricKey, keyFromJwk } from '../asymmetric-key.ts'
import type { Bytes } from '../../node/bytes.ts'
import { digest } from '../derivation.ts'
import { CONVERSIONS, natives } from '../natives.ts'
import { attempt, fail } from '../fail.ts'
import { PADDINGS } from '../signatures.ts'
import {
  type Algorithm,
  checkJwk,
  checkUsages,
  type Digest,
  hashOf,
  type ImportRequest,
  intersect,
  jwkRest,
  optionalBytes,
  type Params,
  requiredBytes,
  requiredHash,
  requiredNumber,
} from './algorithm.ts'
import { factsOfKey, makeKey, type KeyAlgorithm, type KeyFacts, type Usage } from './crypto-key.ts'

/** What the three algorithms differ in, but for what they do. */
interface Kind {
  readonly name: 'RSASSA-PKCS1-v1_5' | 'RSA-PSS' | 'RSA-OAEP'
  readonly use: 'sig' | 'enc'
  readonly publicUsages: readonly Usage[]
  readonly privateUsages: readonly Usage[]
  /** The name in a JWK; undefined where there is none. */
  jwkAlg(hash: Digest): string | undefined
}

function handleOf(key: KeyFacts): AsymmetricKey {
  return key.material as AsymmetricKey
}

function algorithmOf(kind: Kind, key: AsymmetricKey, hash: Digest): KeyAlgorithm {
  const { modulusBits, exponent } = key.facts
  const hex = exponent.toString(16)
  const publicExponent = Uint8Array.fromHex(hex.length % 2 === 0 ? hex : `0${hex}`)
  return { name: kind.name, modulusLength: modulusBits, publicExponent, hash: { name: hash.name } }
}

function generate(kind: Kind): NonNullable<Algorithm['generate']> {
  return ({ params, extractable, usages }) => {
    const bits = requiredNumber(params, 'modulusLength')
    const exponent = requiredBytes(params, 'publicExponent')
    const hash = requiredHash(params)
    checkUsages(usages, ...kind.publicUsages, ...kind.privateUsages)
    const value = exponent.reduce((number, byte) => number * 256 + byte, 0)
    if (value < 3 || value % 2 === 0 || value >= 2 ** 32) fail('OperationError', 'Invalid publicExponent')
    if (bits < 512 || bits > 8192) fail('OperationError', 'An RSA key has 512 to 8192 bits.')
    const privateUsages = intersect(usages, ...kind.privateUsages)
    if (privateUsages.length === 0) fail('SyntaxError', 'Usages cannot be empty when creating a key.')
    const key = makeRsa(bits, value)
    const algorithm = algorithmOf(kind, key, hash)
    return {
      publicKey: makeKey({
        algorithm,
        extractable: true,
        usages: intersect(usages, ...kind.publicUsages),
        material: key.publicKey(),
      }),
      privateKey: makeKey({ algorithm, extractable, usages: privateUsages, material: key }),
    }
  }
}

function makeRsa(bits: number, exponent: number): AsymmetricKey {
  try {
    return AsymmetricKey.generate('RSA', bits, exponent)
  } catch (cause) {
    return fail('OperationError', 'The operation failed for an operation-specific reason', cause)
  }
}

function read(kind: Kind, request: ImportRequest, hash: Digest): AsymmetricKey {
  const { data, usages } = request
  if (data.format === 'raw') return fail('NotSupportedError', `Unable to import ${kind.name} using raw format`)
  const isPrivate = data.format === 'jwk' ? data.jwk['d'] !== undefined : data.format === 'pkcs8'
  checkUsages(usages, ...(isPrivate ? kind.privateUsages : kind.publicUsages))
  if (data.format === 'jwk') checkJwk(data.jwk, { kty: 'RSA', use: kind.use, alg: kind.jwkAlg(hash) }, request)
  const key = data.format === 'jwk' ? keyFromJwk(data.jwk) : AsymmetricKey.read(data.bytes, isPrivate)
  if (key === undefined || key.kind !== 'rsa') fail('DataError', 'Invalid keyData')
  return key
}

function keysOf(kind: Kind): Algorithm {
  return {
    name: kind.name,
    generate: generate(kind),
    import(request) {
      const hash = requiredHash(request.params)
      const key = read(kind, request, hash)
      const { extractable, usages } = request
      return makeKey({ algorithm: algorithmOf(kind, key, hash), extractable, usages, material: key })
    },
    export(key, format) {
      const facts = factsOfKey(key)
      const material = handleOf(facts)
      if (format === 'jwk') {
        const alg = kind.jwkAlg(hashOf(facts))
        return { ...material.jwk(), ...(alg !== undefined && { alg }), ...jwkRest(key) }
      }
      return exportDer(material, format, kind.name)
    },
  }
}

/** @throws DOMException `InvalidAccessError`, `NotSupportedError` */
export function exportDer(key: AsymmetricKey, format: string, name: string): Bytes {
  if (format !== 'spki' && format !== 'pkcs8') return fail('NotSupportedError', `Unable to export ${name} using ${format} format`)
  if ((format === 'pkcs8') !== key.isPrivate)
    fail('InvalidAccessError', `Unable to export a ${key.isPrivate ? 'private' : 'public'} key using ${format} format`)
  return format === 'spki' ? key.spki() : key.pkcs8()
}

/** @throws DOMException `InvalidAccessError` */
export function requireHalf(key: KeyFacts, half: 'private' | 'public'): AsymmetricKey {
  const material = handleOf(key)
  if (material.isPrivate !== (half === 'private')) fail('InvalidAccessError', `Key must be a ${half} key`)
  return material
}

function signatures(padding: number, saltOf: (params: Params) => number | undefined): Pick<Algorithm, 'sign' | 'verify'> {
  return {
    sign(params, key, data) {
      const salt = saltOf(params)
      const { handle } = requireHalf(key, 'private')
      const { native } = hashOf(key)
      return attempt(() => new Uint8Array(natives.sign(handle, native, digest(native, data), padding, salt, undefined)))
    },
    verify(params, key, signature, data) {
      const salt = saltOf(params)
      const { handle } = requireHalf(key, 'public')
      const { native } = hashOf(key)
      return attempt(() => natives.verify(handle, native, digest(native, data), padding, salt, undefined, signature))
    },
  }
}

const SIGN = { use: 'sig', publicUsages: ['verify'], privateUsages: ['sign'] } as const

function jwkName(prefix: string): (hash: Digest) => string | undefined {
  return ({ suffix }) => (suffix === '' ? undefined : `${prefix}${suffix}`)
}

const OAEP: Kind = {
  name: 'RSA-OAEP',
  use: 'enc',
  publicUsages: ['encrypt', 'wrapKey'],
  privateUsages: ['decrypt', 'unwrapKey'],
  jwkAlg: ({ suffix }) => (suffix === '' ? undefined : suffix === '1' ? 'RSA-OAEP' : `RSA-OAEP-${suffix}`),
}

function convert(how: 'publicEncrypt' | 'privateDecrypt'): NonNullable<Algorithm['encrypt']> {
  return (params, key, data) => {
    const label = optionalBytes(params, 'label')
    const { handle } = requireHalf(key, how === 'publicEncrypt' ? 'public' : 'private')
    const { native } = hashOf(key)
    return attempt(() => new Uint8Array(natives.convert(CONVERSIONS[how], handle, data, PADDINGS.oaep, native, label)))
  }
}

export const RSA: readonly Algorithm[] = [
  {
    ...keysOf({ ...SIGN, name: 'RSASSA-PKCS1-v1_5', jwkAlg: jwkName('RS') }),
    ...signatures(PADDINGS.pkcs1, () => undefined),
  },
  {
    ...keysOf({ ...SIGN, name: 'RSA-PSS', jwkAlg: jwkName('PS') }),
    ...signatures(PADDINGS.pss, (params) => requiredNumber(params, 'saltLength')),
  },
  { ...keysOf(OAEP), encrypt: convert('publicEncrypt'), decrypt: convert('privateDecrypt') },
]
