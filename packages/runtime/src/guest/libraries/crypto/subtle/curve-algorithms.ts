import { AsymmetricKey, keyFromJwk, spkiOfOwn, spkiOfPoint } from '../asymmetric-key.ts'
import type { Bytes } from '../../node/bytes.ts'
import { type Curve, curveNamed, type OwnCurve, ownCurveNamed } from '../curves.ts'
import { digest } from '../derivation.ts'
import { natives } from '../natives.ts'
import { attempt, fail } from '../fail.ts'
import { toText } from '../../node/text.ts'
import { derFromPlain, plainFromDer } from '../signatures.ts'
import {
  type Algorithm,
  checkJwk,
  checkUsages,
  type ImportRequest,
  intersect,
  jwkRest,
  type KeyPair,
  type Params,
  requiredHash,
} from './algorithm.ts'
import { factsOfKey, isCryptoKey, makeKey, type KeyAlgorithm, type KeyFacts, type Usage } from './crypto-key.ts'
import { exportDer, requireHalf } from './rsa.ts'

interface Usages {
  readonly public: readonly Usage[]
  readonly private: readonly Usage[]
}

const SIGNS: Usages = { public: ['verify'], private: ['sign'] }
const DERIVES: Usages = { public: [], private: ['deriveKey', 'deriveBits'] }

/** What the algorithms have in common: their keys. */
interface Family {
  readonly name: string
  readonly usages: Usages
  /** What a key says of its algorithm, after the parameters. @throws DOMException `NotSupportedError` */
  algorithm(params: Params): KeyAlgorithm
  /** The curve of a key with this algorithm. */
  curve(algorithm: KeyAlgorithm): Curve | OwnCurve
  /** The curve's own algorithm in a JWK. */
  readonly jwkAlg?: string
}

function isOwn(curve: Curve | OwnCurve): curve is OwnCurve {
  return 'kind' in curve
}

function pairOf(family: Family, request: { params: Params; extractable: boolean; usages: readonly Usage[] }): KeyPair {
  const { params, extractable, usages } = request
  const algorithm = family.algorithm(params)
  const curve = family.curve(algorithm)
  checkUsages(usages, ...family.usages.public, ...family.usages.private)
  const privateUsages = intersect(usages, ...family.usages.private)
  if (privateUsages.length === 0) fail('SyntaxError', 'Usages cannot be empty when creating a key.')
  const key = attempt(() => (isOwn(curve) ? AsymmetricKey.generate(curve.name) : AsymmetricKey.generate('EC', curve.name)))
  const publicUsages = intersect(usages, ...family.usages.public)
  return {
    publicKey: makeKey({ algorithm, extractable: true, usages: publicUsages, material: key.publicKey() }),
    privateKey: makeKey({ algorithm, extractable, usages: privateUsages, material: key }),
  }
}

function read(family: Family, request: ImportRequest, curve: Curve | OwnCurve): AsymmetricKey | undefined {
  const { data, usages } = request
  const isPrivate = data.format === 'jwk' ? data.jwk['d'] !== undefined : data.format === 'pkcs8'
  checkUsages(usages, ...(isPrivate ? family.usages.private : family.usages.public))
  switch (data.format) {
    case 'jwk': {
      if (data.jwk['crv'] !== curve.jwk && data.jwk['kty'] === (isOwn(curve) ? 'OKP' : 'EC')) {
        fail('DataError', 'JWK "crv" does not match the requested algorithm')
      }
      const use = family.usages === SIGNS ? 'sig' : 'enc'
      checkJwk(data.jwk, { kty: isOwn(curve) ? 'OKP' : 'EC', use, alg: jwkAlgOf(family, data.jwk['alg']) }, request)
      return keyFromJwk(data.jwk)
    }
    case 'raw':
      if (isOwn(curve)) {
        return data.bytes.length === curve.size ? AsymmetricKey.read(spkiOfOwn(curve, data.bytes), false) : undefined
      }
      return AsymmetricKey.read(spkiOfPoint(curve, data.bytes), false)
    default:
      return AsymmetricKey.read(data.bytes, isPrivate)
  }
}

/** EdDSA is the older name of what Ed25519 does. */
function jwkAlgOf({ jwkAlg }: Family, given: unknown): string | undefined {
  return jwkAlg !== undefined && given === 'EdDSA' ? 'EdDSA' : jwkAlg
}

function keysOf(family: Family): Algorithm {
  return {
    name: family.name,
    generate: (request) => pairOf(family, request),
    import(request) {
      const algorithm = family.algorithm(request.params)
      const curve = family.curve(algorithm)
      const key = read(family, request, curve)
      if (key === undefined || key.facts.curve !== curve) fail('DataError', 'Invalid keyData')
      return makeKey({ algorithm, extractable: request.extractable, usages: request.usages, material: key })
    },
    export(key, format) {
      const material = factsOfKey(key).material as AsymmetricKey
      if (format === 'jwk') {
        return { ...material.jwk(), ...(family.jwkAlg !== undefined && { alg: family.jwkAlg }), ...jwkRest(key) }
      }
      if (format === 'raw') {
        if (material.isPrivate) fail('InvalidAccessError', 'Unable to export a private key using raw format')
        return material.rawPublic()
      }
      return exportDer(material, format, family.name)
    },
  }
}

/** Curves that `crypto.subtle` has, of those that there are. */
const SUBTLE_CURVES = ['P-256', 'P-384', 'P-521']

function ecFamily(name: string, usages: Usages): Family {
  return {
    name,
    usages,
    algorithm(params) {
      const { namedCurve } = params
      if (namedCurve === undefined) throw new TypeError(`${name}: namedCurve is required.`)
      const text = toText(namedCurve)
      if (!SUBTLE_CURVES.includes(text)) fail('NotSupportedError', 'Unrecognized namedCurve')
      return { name, namedCurve: text }
    },
    curve: ({ namedCurve }) => curveNamed(namedCurve)!,
  }
}

function ownFamily(name: string, usages: Usages, jwkAlg?: string): Family {
  return {
    name,
    usages,
    algorithm: () => ({ name }),
    curve: () => ownCurveNamed(name)!,
    ...(jwkAlg !== undefined && { jwkAlg }),
  }
}

const ecdsa: Algorithm = {
  ...keysOf(ecFamily('ECDSA', SIGNS)),
  sign(params, key, data) {
    const { native } = requiredHash(params)
    const material = requireHalf(key, 'private')
    return attempt(() => plainFromDer(material, new Uint8Array(natives.sign(material.handle, native, digest(native, data)))))
  },
  verify(params, key, signature, data) {
    const { native } = requiredHash(params)
    const material = requireHalf(key, 'public')
    const der = derFromPlain(material, signature)
    if (der === undefined) return false
    return attempt(() => natives.verify(material.handle, native, digest(native, data), undefined, undefined, undefined, der))
  },
}

function edwards(name: string): Algorithm {
  return {
    ...keysOf(ownFamily(name, SIGNS, name)),
    sign(_params, key, data) {
      const { handle } = requireHalf(key, 'private')
      return attempt(() => new Uint8Array(natives.sign(handle, undefined, data)))
    },
    verify(_params, key, signature, data) {
      const { handle } = requireHalf(key, 'public')
      return attempt(() => natives.verify(handle, undefined, data, undefined, undefined, undefined, signature))
    },
  }
}

function peerOf(params: Params, key: KeyFacts): AsymmetricKey {
  const peer = params['public']
  if (!isCryptoKey(peer)) throw new TypeError(`${params.name}: public must be a CryptoKey.`)
  const facts = factsOfKey(peer)
  if (peer.type !== 'public') fail('InvalidAccessError', 'algorithm.public must be a public key')
  const [own, other] = [key.algorithm, facts.algorithm]
  if (own.name !== other.name || own.namedCurve !== other.namedCurve) {
    fail('InvalidAccessError', 'algorithm.public must be a key of the same algorithm and curve')
  }
  return facts.material as AsymmetricKey
}

/** Of a shared secret so many bits; the rest of the last byte is zero. */
function cut(secret: Bytes, bits: number | null): Bytes {
  if (bits === null) return secret
  if (bits > secret.length * 8) fail('OperationError', 'derived bit length is too small')
  const part = secret.slice(0, Math.ceil(bits / 8))
  if (bits % 8 !== 0) part[part.length - 1]! &= (0xff << (8 - (bits % 8))) & 0xff
  return part
}

function exchange(family: Family): Algorithm {
  return {
    ...keysOf(family),
    deriveBits(params, key, bits) {
      const peer = peerOf(params, key)
      const own = requireHalf(key, 'private')
      return cut(
        attempt(() => new Uint8Array(natives.derive(own.handle, peer.handle))),
        bits,
      )
    },
  }
}

export const CURVE_ALGORITHMS: readonly Algorithm[] = [
  ecdsa,
  edwards('Ed25519'),
  edwards('Ed448'),
  exchange(ecFamily('ECDH', DERIVES)),
  exchange(ownFamily('X25519', DERIVES)),
  exchange(ownFamily('X448', DERIVES)),
]
