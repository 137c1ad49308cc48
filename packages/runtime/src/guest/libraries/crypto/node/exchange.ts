import { AsymmetricKey, pkcs8OfNumber, spkiOfPoint } from '../asymmetric-key.ts'
import { type Bytes, concat, padZeroes } from '../../node/bytes.ts'
import { type Curve, CURVES, curveNamed } from '../curves.ts'
import { natives } from '../natives.ts'
import { toText } from '../../node/text.ts'
import { encoded, later, toBuffer, toBytes } from '../../node/data.ts'
import type { NodeBuffer } from '../../node/environment.ts'
import { invalidType, native, nodeError } from '../../node/errors.ts'
import { asymmetricOf } from './key-object.ts'

interface Halves {
  readonly privateKey?: unknown
  readonly publicKey?: unknown
}

export function diffieHellman({ privateKey, publicKey }: Halves, callback?: unknown): NodeBuffer | void {
  const [own, peer] = [asymmetricOf(privateKey, 'private'), asymmetricOf(publicKey, 'public')]
  if (own.kind !== peer.kind) {
    throw nodeError('ERR_CRYPTO_INCOMPATIBLE_KEY', `Incompatible key types for Diffie-Hellman: ${own.kind} and ${peer.kind}`)
  }
  const work = (): NodeBuffer => toBuffer(native(() => natives.derive(own.handle, peer.handle)))
  if (callback === undefined) return work()
  later(callback, work)
}

export function curveOf(name: unknown): Curve {
  const curve = curveNamed(name)
  if (curve === undefined) throw nodeError('ERR_CRYPTO_INVALID_CURVE', 'Invalid EC curve name', TypeError)
  return curve
}

function pointOf(key: AsymmetricKey, format: unknown): Bytes {
  const point = key.rawPublic()
  if (format === undefined || format === 'uncompressed') return point
  const { size } = key.facts.curve!
  const isOdd = (point.at(-1)! & 1) === 1
  if (format === 'compressed') return concat(Uint8Array.of(isOdd ? 3 : 2), point.subarray(1, 1 + size))
  if (format === 'hybrid') return concat(Uint8Array.of(isOdd ? 7 : 6), point.subarray(1))
  throw nodeError('ERR_CRYPTO_ECDH_INVALID_FORMAT', `Invalid ECDH format: ${toText(format)}`, TypeError)
}

export class ECDH {
  readonly #curve: Curve
  #key: AsymmetricKey | undefined

  constructor(curve: unknown) {
    if (typeof curve !== 'string') throw invalidType('curve', 'of type string', curve)
    this.#curve = curveOf(curve)
  }

  static convertKey(key: unknown, curve: unknown, inputEncoding?: unknown, outputEncoding?: unknown, format?: unknown) {
    const read = AsymmetricKey.read(spkiOfPoint(curveOf(curve), toBytes(key, 'key', inputEncoding)), false)
    if (read === undefined) throw nodeError('ERR_CRYPTO_OPERATION_FAILED', 'Failed to convert Buffer to EC_POINT')
    return encoded(pointOf(read, format), outputEncoding)
  }

  generateKeys(encoding?: unknown, format?: unknown): NodeBuffer | string {
    this.#key = AsymmetricKey.generate('EC', this.#curve.name)
    return this.getPublicKey(encoding, format)
  }

  computeSecret(otherPublicKey: unknown, inputEncoding?: unknown, outputEncoding?: unknown): NodeBuffer | string {
    const point = toBytes(otherPublicKey, 'otherPublicKey', inputEncoding)
    const peer = AsymmetricKey.read(spkiOfPoint(this.#curve, point), false)
    if (peer === undefined) {
      throw nodeError('ERR_CRYPTO_ECDH_INVALID_PUBLIC_KEY', 'Public key is not valid for specified curve')
    }
    const own = this.#pair()
    return encoded(
      native(() => natives.derive(own.handle, peer.handle)),
      outputEncoding,
    )
  }

  getPublicKey(encoding?: unknown, format?: unknown): NodeBuffer | string {
    return encoded(pointOf(this.#pair('Failed to get ECDH public key'), format), encoding)
  }

  getPrivateKey(encoding?: unknown): NodeBuffer | string {
    return encoded(this.#pair('Failed to get ECDH private key').rawPrivate(), encoding)
  }

  setPrivateKey(privateKey: unknown, encoding?: unknown): this {
    const number = toBytes(privateKey, 'privateKey', encoding)
    const { size } = this.#curve
    const isShort = number.length <= size
    const key = isShort ? AsymmetricKey.read(pkcs8OfNumber(this.#curve, padZeroes(number, size)), true) : undefined
    if (key === undefined || !natives.keyIsWhole(key.handle)) {
      throw nodeError('ERR_CRYPTO_INVALID_KEYTYPE', 'Private key is not valid for specified curve.')
    }
    this.#key = key
    return this
  }

  #pair(message = 'Failed to get ECDH key'): AsymmetricKey {
    if (this.#key === undefined) throw nodeError('ERR_CRYPTO_OPERATION_FAILED', message)
    return this.#key
  }
}

export function createECDH(curve: unknown): ECDH {
  return new ECDH(curve)
}

export function getCurves(): string[] {
  return CURVES.map(({ name }) => name).toSorted()
}
