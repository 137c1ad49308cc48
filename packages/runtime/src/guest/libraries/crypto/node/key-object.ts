import { AsymmetricKey, type Jwk, keyFromJwk, pkcs8OfRsa, pkcs8OfSec1, sec1Of, spkiOfRsa } from '../asymmetric-key.ts'
import { type Bytes, bytesOf, toBase64Url } from '../../node/bytes.ts'
import { DerError, field, readAll, readElement, readSequence, TAGS } from '../der.ts'
import { natives } from '../natives.ts'
import { decodeUtf8 } from '../../../web-api/encoding.ts'
import { fillRandom } from '../../../web-api/host.ts'
import { CryptoKey, factsOfKey, isCryptoKey } from '../subtle/crypto-key.ts'
import { subtle } from '../subtle/subtle.ts'
import { raise, toBuffer, toBytes } from '../../node/data.ts'
import type { NodeBuffer } from '../../node/environment.ts'
import { invalidType, invalidValue, nodeError, notDecoded } from '../../node/errors.ts'
import { openPem, openPkcs8, passphraseBytes, readPem, sealPkcs8, spkiOfCertificate, writePem } from './pem.ts'

type Material = Bytes | AsymmetricKey

const TOKEN = {}

let materialOf: (key: KeyObject) => Material
export let isKeyObject: (value: unknown) => value is KeyObject

export interface ExportOptions {
  readonly format?: string
  readonly type?: string
  readonly cipher?: unknown
  readonly passphrase?: unknown
}

/** Names of OpenSSL for what an RSA-PSS key may be restricted to. */
const DIGEST_OIDS: Readonly<Record<string, string>> = {
  '2b0e03021a': 'sha1',
  '608648016503040201': 'sha256',
  '608648016503040202': 'sha384',
  '608648016503040203': 'sha512',
  '608648016503040204': 'sha224',
}

export class KeyObject {
  readonly #material: Material

  constructor(token?: unknown, material?: Material) {
    if (token !== TOKEN || material === undefined) throw new TypeError('Illegal constructor')
    this.#material = material
  }

  static from(key: unknown): KeyObject {
    if (!isCryptoKey(key)) throw invalidType('key', 'an instance of CryptoKey', key)
    return keyObject(factsOfKey(key).material)
  }

  get type(): 'secret' | 'public' | 'private' {
    if (this.#material instanceof Uint8Array) return 'secret'
    return this.#material.isPrivate ? 'private' : 'public'
  }

  equals(other: unknown): boolean {
    if (!isKeyObject(other)) throw invalidType('otherKeyObject', 'an instance of KeyObject', other)
    if (other.type !== this.type) return false
    const [own, others] = [contentOf(this.#material), contentOf(other.#material)]
    return own.length === others.length && natives.equal(own, others)
  }

  toCryptoKey(algorithm: unknown, extractable: boolean, keyUsages: readonly string[]): Promise<CryptoKey> {
    const material = this.#material
    const [format, data] =
      material instanceof Uint8Array
        ? (['raw', material] as const)
        : material.isPrivate
          ? (['pkcs8', material.pkcs8()] as const)
          : (['spki', material.spki()] as const)
    return subtle.importKey(format, data, algorithm, extractable, keyUsages)
  }

  get [Symbol.toStringTag](): string {
    return 'KeyObject'
  }

  static {
    materialOf = (key) => key.#material
    isKeyObject = (value): value is KeyObject => typeof value === 'object' && value !== null && #material in value
  }
}

function contentOf(material: Material): Bytes {
  if (material instanceof Uint8Array) return material
  return material.isPrivate ? material.pkcs8() : material.spki()
}

class SecretKeyObject extends KeyObject {
  get symmetricKeySize(): number {
    return (materialOf(this) as Bytes).length
  }

  export(options: ExportOptions = {}): NodeBuffer | object {
    const bytes = materialOf(this) as Bytes
    if (options.format === 'jwk') return { kty: 'oct', k: toBase64Url(bytes) }
    return toBuffer(bytes.slice())
  }
}

class AsymmetricKeyObject extends KeyObject {
  get asymmetricKeyType(): string {
    return (materialOf(this) as AsymmetricKey).kind
  }

  get asymmetricKeyDetails(): object {
    const { kind, curve, modulusBits, exponent, parameters } = (materialOf(this) as AsymmetricKey).facts
    if (kind === 'ec') return { namedCurve: curve!.name }
    if (kind !== 'rsa' && kind !== 'rsa-pss') return {}
    const size = { modulusLength: modulusBits, publicExponent: exponent }
    return kind === 'rsa-pss' && parameters !== undefined ? { ...size, ...restrictions(parameters) } : size
  }
}

/** What an RSA-PSS key may be used with (RFC 4055, section 3.1). */
function restrictions(parameters: Bytes): object {
  const fields = readElement(parameters).tag === TAGS.sequence ? readSequence(parameters) : []
  if (fields.length === 0) return {}
  const parameter = (tag: number): Bytes | undefined => fields.find((one) => one.tag === tag)?.content
  const digestOf = (content: Bytes | undefined): string =>
    content === undefined ? 'sha1' : (DIGEST_OIDS[field(readSequence(content), 0).content.toHex()] ?? 'unknown')
  const mask = parameter(0xa1)
  const salt = parameter(0xa2)
  return {
    hashAlgorithm: digestOf(parameter(0xa0)),
    mgf1HashAlgorithm: digestOf(mask === undefined ? undefined : readSequence(mask)[1]?.whole),
    saltLength: salt === undefined ? 20 : readElement(salt).content.reduce((number, byte) => number * 256 + byte, 0),
  }
}

class PublicKeyObject extends AsymmetricKeyObject {
  export(options: ExportOptions = {}): NodeBuffer | string | object {
    const key = materialOf(this) as AsymmetricKey
    if (options.format === 'jwk') return checkJwkKind(key).jwk()
    if (options.type === 'pkcs1') {
      if (key.kind !== 'rsa') throw incompatible('pkcs1', 'can only be used for RSA keys')
      return written('RSA PUBLIC KEY', key.rawPublic(), options)
    }
    if (options.type !== 'spki') throw invalidValue('options.type', options.type)
    return written('PUBLIC KEY', key.spki(), options)
  }
}

class PrivateKeyObject extends AsymmetricKeyObject {
  export(options: ExportOptions = {}): NodeBuffer | string | object {
    const key = materialOf(this) as AsymmetricKey
    const { format, type, passphrase } = options
    const cipher = options.cipher ?? undefined
    if (format === 'jwk') {
      if (cipher !== undefined || passphrase !== undefined) throw incompatible('jwk', 'does not support encryption')
      return checkJwkKind(key).jwk()
    }
    if (cipher === undefined && passphrase !== undefined) throw invalidValue('options.cipher', cipher)
    if (cipher !== undefined && type !== 'pkcs8') throw incompatible(String(type), 'does not support encryption here; use pkcs8')
    if (type === 'pkcs1') {
      if (key.kind !== 'rsa') throw incompatible('pkcs1', 'can only be used for RSA keys')
      return written('RSA PRIVATE KEY', key.innerPrivate(), options)
    }
    if (type === 'sec1') {
      if (key.kind !== 'ec') throw incompatible('sec1', 'can only be used for EC keys')
      return written('EC PRIVATE KEY', sec1Of(key), options)
    }
    if (type !== 'pkcs8') throw invalidValue('options.type', type)
    if (cipher === undefined) return written('PRIVATE KEY', key.pkcs8(), options)
    return written('ENCRYPTED PRIVATE KEY', sealPkcs8(key.pkcs8(), cipher, passphrase), options)
  }
}

function incompatible(what: string, why: string): Error {
  return nodeError('ERR_CRYPTO_INCOMPATIBLE_KEY_OPTIONS', `The selected key encoding ${what} ${why}.`)
}

function checkJwkKind(key: AsymmetricKey): AsymmetricKey {
  if (key.kind === 'rsa-pss') throw nodeError('ERR_CRYPTO_JWK_UNSUPPORTED_KEY_TYPE', 'Unsupported JWK Key Type.')
  return key
}

function written(label: string, der: Bytes, { format }: ExportOptions): NodeBuffer | string {
  if (format === 'der') return toBuffer(der)
  if (format !== 'pem') throw invalidValue('options.format', format)
  return writePem(label, der)
}

export function keyObject(material: Material): SecretKeyObject | PublicKeyObject | PrivateKeyObject {
  if (material instanceof Uint8Array) return new SecretKeyObject(TOKEN, material)
  return material.isPrivate ? new PrivateKeyObject(TOKEN, material) : new PublicKeyObject(TOKEN, material)
}

/** What a key may be given as, with the options that come with it. */
export interface KeyInput {
  readonly key: unknown
  readonly format?: string
  readonly type?: string
  readonly passphrase?: unknown
  readonly encoding?: string
}

function isInput(value: unknown): value is KeyInput {
  return typeof value === 'object' && value !== null && !isKeyObject(value) && !isCryptoKey(value) && 'key' in value
}

/** The bytes of a secret key, however it is given. @throws TypeError */
export function secretOf(key: unknown, name: string, encoding?: unknown): Bytes {
  const material = isKeyObject(key) ? materialOf(key) : isCryptoKey(key) ? factsOfKey(key).material : undefined
  if (material === undefined) return toBytes(key, name, encoding)
  if (material instanceof Uint8Array) return material
  const type = material.isPrivate ? 'private' : 'public'
  throw nodeError('ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE', `Invalid key object type ${type}, expected secret.`, TypeError)
}

/** The key that is meant. @param half a private key is taken for its public half where that is wanted */
export function asymmetricOf(given: unknown, half: 'private' | 'public'): AsymmetricKey {
  const input = isInput(given) ? given : { key: given }
  const { key } = input
  const material = isKeyObject(key) ? materialOf(key) : isCryptoKey(key) ? factsOfKey(key).material : undefined
  const found = material ?? read(input, half)
  if (found instanceof Uint8Array || (half === 'private' && !found.isPrivate)) {
    const type = found instanceof Uint8Array ? 'secret' : 'public'
    const message = `Invalid key object type ${type}, expected ${half === 'private' ? 'private' : 'private or public'}.`
    throw nodeError('ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE', message, TypeError)
  }
  return found
}

const KEYS = 'of type string or an instance of ArrayBuffer, Buffer, TypedArray, DataView, KeyObject, or CryptoKey'

function read(input: KeyInput, half: 'private' | 'public'): AsymmetricKey {
  const { key, format, encoding } = input
  if (format === 'jwk') {
    if (typeof key !== 'object' || key === null) throw invalidType('key.key', 'of type object', key)
    const made = keyFromJwk(key as Jwk)
    return made ?? raise(nodeError('ERR_CRYPTO_INVALID_JWK', 'Invalid JWK data', TypeError))
  }
  const bytes = typeof key === 'string' ? toBytes(key, 'key', encoding) : (bytesOf(key) ?? raise(invalidType('key', KEYS, key)))
  try {
    const found = format === 'der' ? readDer(bytes, input, half) : readText(bytes, input, half)
    if (found !== undefined) return found
  } catch (error) {
    if (!(error instanceof DerError)) throw error
  }
  throw notDecoded()
}

function readText(bytes: Bytes, input: KeyInput, half: 'private' | 'public'): AsymmetricKey | undefined {
  const pem = readPem(decodeUtf8(bytes))
  if (pem === undefined) return undefined
  const passphrase = passphraseBytes(input.passphrase)
  const content = openPem(pem, passphrase)
  switch (pem.label) {
    case 'PRIVATE KEY':
      return AsymmetricKey.read(content, true)
    case 'ENCRYPTED PRIVATE KEY':
      return AsymmetricKey.read(openPkcs8(content, passphrase), true)
    case 'RSA PRIVATE KEY':
      return AsymmetricKey.read(pkcs8OfRsa(content), true)
    case 'EC PRIVATE KEY':
      return AsymmetricKey.read(pkcs8OfSec1(content), true)
    default:
      return half === 'public' ? readPublic(pem.label, content) : undefined
  }
}

function readPublic(label: string, content: Bytes): AsymmetricKey | undefined {
  switch (label) {
    case 'PUBLIC KEY':
      return AsymmetricKey.read(content, false)
    case 'RSA PUBLIC KEY':
      return AsymmetricKey.read(spkiOfRsa(content), false)
    case 'CERTIFICATE':
    case 'X509 CERTIFICATE':
      return AsymmetricKey.read(spkiOfCertificate(content), false)
    default:
      return undefined
  }
}

function readDer(der: Bytes, { type, passphrase }: KeyInput, half: 'private' | 'public'): AsymmetricKey | undefined {
  switch (type) {
    case 'spki':
      return AsymmetricKey.read(der, false)
    case 'pkcs1':
      return half === 'public' && readSequence(der).length === 2
        ? AsymmetricKey.read(spkiOfRsa(der), false)
        : AsymmetricKey.read(pkcs8OfRsa(der), true)
    case 'sec1':
      return AsymmetricKey.read(pkcs8OfSec1(der), true)
    case 'pkcs8': {
      // The one that is encrypted begins with how, and the other with a version.
      const isEncrypted = readAll(readElement(der).content)[0]?.tag === TAGS.sequence
      return AsymmetricKey.read(isEncrypted ? openPkcs8(der, passphraseBytes(passphrase)) : der, true)
    }
    default:
      throw invalidValue('key.type', type)
  }
}

export function createSecretKey(key: unknown, encoding?: unknown): KeyObject {
  return keyObject(secretOf(key, 'key', encoding).slice())
}

export function createPrivateKey(key: unknown): KeyObject {
  return keyObject(asymmetricOf(key, 'private'))
}

export function createPublicKey(key: unknown): KeyObject {
  if (isKeyObject(key) && key.type !== 'private') {
    const message = `Invalid key object type ${key.type}, expected private.`
    throw nodeError('ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE', message, TypeError)
  }
  return keyObject(asymmetricOf(key, 'public').publicKey())
}

interface PairOptions {
  readonly modulusLength?: number
  readonly publicExponent?: number
  readonly namedCurve?: string
  readonly publicKeyEncoding?: ExportOptions
  readonly privateKeyEncoding?: ExportOptions
}

const OWN_KINDS = ['ed25519', 'ed448', 'x25519', 'x448']

/** Checked before any work. @returns what makes it */
export function keyPairMaker(type: unknown, options: PairOptions = {}, curveNamed: (name: unknown) => string): () => object {
  if (typeof type !== 'string') throw invalidType('type', 'of type string', type)
  let make: () => AsymmetricKey
  if (type === 'rsa' || type === 'rsa-pss') {
    const { modulusLength, publicExponent = 65_537 } = options
    if (typeof modulusLength !== 'number') throw invalidType('options.modulusLength', 'of type number', modulusLength)
    make = () => AsymmetricKey.generate(type.toUpperCase(), modulusLength, publicExponent)
  } else if (type === 'ec') {
    if (typeof options.namedCurve !== 'string') throw invalidType('options.namedCurve', 'of type string', options.namedCurve)
    const curve = curveNamed(options.namedCurve)
    make = () => AsymmetricKey.generate('EC', curve)
  } else if (OWN_KINDS.includes(type)) {
    make = () => AsymmetricKey.generate(type.toUpperCase())
  } else {
    throw nodeError('ERR_INVALID_ARG_VALUE', `The argument 'type' must be a supported key type. Received '${type}'`, TypeError)
  }
  return () => {
    const key = make()
    const [publicKey, privateKey] = [keyObject(key.publicKey()), keyObject(key)]
    return {
      publicKey: options.publicKeyEncoding === undefined ? publicKey : publicKey.export(options.publicKeyEncoding),
      privateKey: options.privateKeyEncoding === undefined ? privateKey : privateKey.export(options.privateKeyEncoding),
    }
  }
}

/** A secret key of so many bits. */
export function newSecret(type: unknown, options: { length?: number } = {}): KeyObject {
  const { length } = options
  if (typeof length !== 'number') throw invalidType('options.length', 'of type number', length)
  const isKnown = type === 'hmac' ? length >= 8 && length < 2 ** 31 : type === 'aes' && [128, 192, 256].includes(length)
  if (!isKnown) throw invalidValue(type === 'hmac' || type === 'aes' ? 'options.length' : 'type', type === 'aes' ? length : type)
  const bytes = new Uint8Array(Math.floor(length / 8))
  fillRandom(bytes)
  return keyObject(bytes)
}
