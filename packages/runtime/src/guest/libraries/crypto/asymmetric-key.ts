import { type Bytes, concat, equals, fromBase64Url, NO_BYTES, padZeroes, toBase64Url, trimZeroes } from '../node/bytes.ts'
import { type Curve, CURVES, curveNamed, OWN_CURVES, type OwnCurve, ownCurveNamed } from './curves.ts'
import {
  bitString,
  DerError,
  field,
  integer,
  NOTHING,
  octets,
  oid,
  readAll,
  readElement,
  readSequence,
  sequence,
  small,
  TAGS,
  write,
} from './der.ts'
import { type Handle, natives } from './natives.ts'

export type Kind = 'rsa' | 'rsa-pss' | 'ec' | OwnCurve['kind']

const RSA = '2a864886f70d010101'
const RSA_PSS = '2a864886f70d01010a'
const EC = '2a8648ce3d0201'

/** A JSON Web Key (RFC 7517), of which nothing is known yet. */
export type Jwk = Readonly<Record<string, unknown>>

/** The members that make a private RSA key, in the order of RFC 8017, section A.1.2. */
const RSA_NUMBERS = ['n', 'e', 'd', 'p', 'q', 'dp', 'dq', 'qi'] as const

interface Facts {
  readonly kind: Kind
  readonly curve: Curve | OwnCurve | undefined
  /** Of RSA. */
  readonly modulusBits: number
  readonly exponent: bigint
  /** The parameters of the algorithm, as DER; those of RSA-PSS are what it is restricted to. */
  readonly parameters: Bytes | undefined
  /** What the key itself is written as. */
  readonly content: Bytes
}

/** A public or a private key, as OpenSSL keeps it. */
export class AsymmetricKey {
  readonly isPrivate: boolean
  readonly handle: Handle
  #facts: Facts | undefined

  constructor(handle: Handle, isPrivate: boolean) {
    this.handle = handle
    this.isPrivate = isPrivate
  }

  /**
   * @returns undefined for what is no such key, or of a kind or size that there is not
   * @throws RangeError for a private RSA key that is too long
   */
  static read(der: Bytes, isPrivate: boolean): AsymmetricKey | undefined {
    const handle = natives.keyRead(der, isPrivate)
    if (handle !== undefined) return new AsymmetricKey(handle, isPrivate)
    if (isPrivate) refuseLong(der)
    return undefined
  }

  static generate(kind: string, sizeOrCurve?: number | string, exponent?: number): AsymmetricKey {
    return new AsymmetricKey(natives.keyGenerate(kind, sizeOrCurve, exponent), true)
  }

  spki(): Bytes {
    return new Uint8Array(natives.keyWrite(this.handle, false))
  }

  pkcs8(): Bytes {
    return new Uint8Array(natives.keyWrite(this.handle, true))
  }

  publicKey(): AsymmetricKey {
    return this.isPrivate ? AsymmetricKey.read(this.spki(), false)! : this
  }

  get facts(): Facts {
    return (this.#facts ??= factsOf(this.spki()))
  }

  get kind(): Kind {
    return this.facts.kind
  }

  /** The public half in the form that its curve has for it, or the RSAPublicKey of PKCS #1. */
  rawPublic(): Bytes {
    return this.facts.content
  }

  /** The private half of a key on a curve. */
  rawPrivate(): Bytes {
    const { curve, kind } = this.facts
    const inner = privateContent(this.pkcs8())
    return kind === 'ec' ? padZeroes(readSequence(inner)[1]!.content, curve!.size) : readElement(inner).content
  }

  /** What is in its PKCS #8: for RSA the RSAPrivateKey of PKCS #1, for a curve its own. */
  innerPrivate(): Bytes {
    return privateContent(this.pkcs8())
  }

  /** The members that make the key. */
  jwk(): Record<string, string> {
    const { kind, curve, content } = this.facts
    if (kind === 'rsa' || kind === 'rsa-pss') return this.#rsaJwk()
    const d = this.isPrivate ? { d: toBase64Url(this.rawPrivate()) } : {}
    if (kind !== 'ec') return { kty: 'OKP', crv: curve!.jwk, x: toBase64Url(content), ...d }
    const { size } = curve!
    const [x, y] = [content.subarray(1, 1 + size), content.subarray(1 + size)].map(toBase64Url)
    return { kty: 'EC', crv: curve!.jwk, x: x!, y: y!, ...d }
  }

  #rsaJwk(): Record<string, string> {
    const numbers = readSequence(this.isPrivate ? this.innerPrivate() : this.facts.content)
    const jwk: Record<string, string> = { kty: 'RSA' }
    const from = this.isPrivate ? 1 : 0
    for (const [index, name] of RSA_NUMBERS.slice(0, this.isPrivate ? 8 : 2).entries()) {
      jwk[name] = toBase64Url(trimZeroes(numbers[from + index]!.content))
    }
    return jwk
  }
}

function privateContent(pkcs8: Bytes): Bytes {
  return readSequence(pkcs8)[2]!.content
}

/** As in `host/native/key.cc`: of longer ones wrong numbers would take too long. Keys that are made here may be longer. */
const MOST_GIVEN_BITS = 4096

function refuseLong(pkcs8: Bytes): void {
  let bits = 0
  try {
    const [, algorithm, content] = readSequence(pkcs8)
    const name = field(readAll(algorithm?.content ?? NO_BYTES), 0).content.toHex()
    if (name === RSA || name === RSA_PSS) bits = bitsOf(field(readSequence(content?.content ?? NO_BYTES), 1).content)
  } catch (error) {
    if (!(error instanceof DerError)) throw error
  }
  if (bits <= MOST_GIVEN_BITS) return
  throw new RangeError(`A private RSA key that is imported has ${MOST_GIVEN_BITS} bits at most; this one has ${bits}.`)
}

function bitsOf(number: Bytes): number {
  const trimmed = trimZeroes(number)
  return trimmed.length * 8 - Math.clz32(trimmed[0] ?? 0) + 24
}

function factsOf(spki: Bytes): Facts {
  const [algorithm, bits] = readSequence(spki)
  const [id, parameters] = readAll(algorithm!.content)
  const name = id!.content.toHex()
  // In front stands how many bits of the last byte count for nothing.
  const content = bits!.content.slice(1)
  const known = { content, parameters: parameters?.whole, modulusBits: 0, exponent: 0n }
  if (name === EC) {
    const curve = CURVES.find((one) => one.oid === parameters?.content.toHex())
    return { ...known, kind: 'ec', curve }
  }
  const own = OWN_CURVES.find((one) => one.oid === name)
  if (own !== undefined) return { ...known, kind: own.kind, curve: own }
  const [n, e] = readSequence(content)
  return {
    ...known,
    kind: name === RSA_PSS ? 'rsa-pss' : 'rsa',
    curve: undefined,
    modulusBits: bitsOf(n!.content),
    exponent: BigInt(`0x${e!.content.toHex()}`),
  }
}

/** SPKI around an RSAPublicKey. */
export function spkiOfRsa(content: Bytes): Bytes {
  return sequence(sequence(oid(RSA), NOTHING), bitString(content))
}

/** PKCS #8 around an RSAPrivateKey. */
export function pkcs8OfRsa(content: Bytes): Bytes {
  return sequence(small(0), sequence(oid(RSA), NOTHING), octets(content))
}

export function spkiOfPoint(curve: Curve, point: Bytes): Bytes {
  return sequence(sequence(oid(EC), oid(curve.oid)), bitString(point))
}

export function pkcs8OfNumber(curve: Curve, number: Bytes, point?: Bytes): Bytes {
  const inner = sequence(small(1), octets(number), ...(point === undefined ? [] : [write(TAGS.second, bitString(point))]))
  return sequence(small(0), sequence(oid(EC), oid(curve.oid)), octets(inner))
}

/** PKCS #8 around an ECPrivateKey (RFC 5915), which names its curve. @throws DerError */
export function pkcs8OfSec1(content: Bytes): Bytes {
  const curve = readSequence(content).find(({ tag }) => tag === TAGS.first)
  if (curve === undefined) throw new DerError('The key does not name its curve.')
  return sequence(small(0), sequence(oid(EC), curve.content), octets(content))
}

/** The ECPrivateKey of a key on a curve. */
export function sec1Of(key: AsymmetricKey): Bytes {
  const { curve, content } = key.facts
  const number = key.rawPrivate()
  return sequence(small(1), octets(number), write(TAGS.first, oid(curve!.oid)), write(TAGS.second, bitString(content)))
}

export function spkiOfOwn(curve: OwnCurve, content: Bytes): Bytes {
  return sequence(sequence(oid(curve.oid)), bitString(content))
}

export function pkcs8OfOwn(curve: OwnCurve, content: Bytes): Bytes {
  return sequence(small(0), sequence(oid(curve.oid)), octets(octets(content)))
}

/** The key that the members make; undefined if they make none. What else they say is for others to look at. */
export function keyFromJwk(jwk: Jwk): AsymmetricKey | undefined {
  switch (jwk['kty']) {
    case 'RSA':
      return rsaFromJwk(jwk)
    case 'EC':
      return ecFromJwk(jwk)
    case 'OKP':
      return ownFromJwk(jwk)
    default:
      return undefined
  }
}

function bytesOfMember(jwk: Jwk, name: string): Bytes | undefined {
  const text = jwk[name]
  return typeof text === 'string' ? fromBase64Url(text) : undefined
}

function rsaFromJwk(jwk: Jwk): AsymmetricKey | undefined {
  const isPrivate = jwk['d'] !== undefined
  const numbers = RSA_NUMBERS.slice(0, isPrivate ? 8 : 2).map((name) => bytesOfMember(jwk, name))
  if (numbers.some((number) => number === undefined || number.length === 0)) return undefined
  const parts = (numbers as Bytes[]).map(integer)
  if (!isPrivate) return AsymmetricKey.read(spkiOfRsa(sequence(...parts)), false)
  return AsymmetricKey.read(pkcs8OfRsa(sequence(small(0), ...parts)), true)
}

function ecFromJwk(jwk: Jwk): AsymmetricKey | undefined {
  const curve = curveNamed(jwk['crv'])
  const [x, y, d] = ['x', 'y', 'd'].map((name) => bytesOfMember(jwk, name))
  if (curve === undefined || x?.length !== curve.size || y?.length !== curve.size) return undefined
  const point = concat(Uint8Array.of(4), x, y)
  if (jwk['d'] === undefined) return AsymmetricKey.read(spkiOfPoint(curve, point), false)
  if (d?.length !== curve.size) return undefined
  const key = AsymmetricKey.read(pkcs8OfNumber(curve, d, point), true)
  return key !== undefined && natives.keyIsWhole(key.handle) ? key : undefined
}

function ownFromJwk(jwk: Jwk): AsymmetricKey | undefined {
  const curve = ownCurveNamed(jwk['crv'])
  const [x, d] = ['x', 'd'].map((name) => bytesOfMember(jwk, name))
  if (curve === undefined || x?.length !== curve.size) return undefined
  if (jwk['d'] === undefined) return AsymmetricKey.read(spkiOfOwn(curve, x), false)
  if (d?.length !== curve.size) return undefined
  const key = AsymmetricKey.read(pkcs8OfOwn(curve, d), true)
  return key !== undefined && equals(key.rawPublic(), x) ? key : undefined
}
