import { type Bytes, NO_BYTES } from '../../node/bytes.ts'
import { authenticate, updateCipher } from '../ciphers.ts'
import { type Handle, natives } from '../natives.ts'
import { toText } from '../../node/text.ts'
import { toBuffer, toBytes } from '../../node/data.ts'
import { environment, type NodeBuffer, type StringDecoder } from '../../node/environment.ts'
import { invalidType, native, nodeError } from '../../node/errors.ts'
import { secretOf } from './key-object.ts'
import { streamAtUse } from '../../node/lazy-stream.ts'

/** Numbers that OpenSSL has for modes. */
const MODES = ['stream', 'ecb', 'cbc', 'cfb', 'ofb', 'ctr', 'gcm', 'ccm', undefined, undefined, undefined] as const
const GCM = 6
const WRAP = 0x10002
const OCB = 0x10003

interface CipherOptions {
  readonly authTagLength?: number
}

function modeName(mode: number): string | undefined {
  if (mode === WRAP) return 'wrap'
  return mode === OCB ? 'ocb' : MODES[mode]
}

export function getCipherInfo(nameOrNid: unknown, options?: { keyLength?: number; ivLength?: number }): object | undefined {
  if (typeof nameOrNid !== 'string') return undefined
  const info = natives.cipherInfo(nameOrNid)
  if (info === undefined) return undefined
  const [mode, keyLength, ivLength, blockSize, nid, isAuthenticated] = info
  if (options?.keyLength !== undefined && options.keyLength !== keyLength) return undefined
  if (options?.ivLength !== undefined && options.ivLength !== ivLength && !isAuthenticated) return undefined
  return {
    mode: modeName(mode),
    name: nameOrNid.toLowerCase(),
    nid,
    ...(blockSize > 1 && { blockSize }),
    ...(ivLength !== 0 && { ivLength: options?.ivLength ?? ivLength }),
    keyLength,
  }
}

/** What a tag has, where nothing else is said. */
const TAG_BYTES = 16

function isValidTag(mode: number, length: number): boolean {
  if (mode === GCM) return length === 4 || length === 8 || (length >= 12 && length <= 16)
  return length >= 1 && length <= 16
}

function invalidTag(length: number): Error {
  return nodeError('ERR_CRYPTO_INVALID_AUTH_TAG', `Invalid authentication tag length: ${length}`, TypeError)
}

function invalidState(operation: string): Error {
  return nodeError('ERR_CRYPTO_INVALID_STATE', `Invalid state for operation ${operation}`)
}

/** What encrypts and what decrypts have in common. */
class Pieces {
  protected readonly handle: Handle
  protected readonly mode: number
  protected readonly isAuthenticated: boolean
  protected readonly tagLength: number | undefined
  protected hasBegun = false
  protected hasEnded = false
  #decoder: StringDecoder | undefined

  constructor(encrypts: boolean, name: unknown, key: unknown, iv: unknown, options: CipherOptions = {}) {
    if (typeof name !== 'string') throw invalidType('cipher', 'of type string', name)
    const keyBytes = secretOf(key, 'key')
    const ivBytes = iv === null ? NO_BYTES : toBytes(iv, 'iv')
    const info = natives.cipherInfo(name)
    if (info === undefined) throw nodeError('ERR_CRYPTO_UNKNOWN_CIPHER', 'Unknown cipher')
    this.mode = info[0]
    this.isAuthenticated = info[5]
    const usualTag = this.mode === OCB ? undefined : TAG_BYTES
    this.tagLength = this.isAuthenticated ? (options.authTagLength ?? usualTag) : undefined
    if (this.mode === OCB && this.tagLength === undefined) {
      throw nodeError('ERR_CRYPTO_INVALID_AUTH_TAG', `authTagLength required for ${name}`, TypeError)
    }
    if (this.tagLength !== undefined && !isValidTag(this.mode, this.tagLength)) throw invalidTag(this.tagLength)
    this.handle = native(() => natives.cipherNew(name, encrypts, keyBytes, ivBytes, this.tagLength))!
  }

  update(data: unknown, inputEncoding?: unknown, outputEncoding?: unknown): NodeBuffer | string {
    const bytes = toBytes(data, 'data', inputEncoding)
    if (this.hasEnded) throw nodeError('ERR_CRYPTO_INVALID_STATE', 'Unsupported state')
    this.hasBegun = true
    return this.#encoded(
      native(() => updateCipher(this.handle, bytes)),
      outputEncoding,
      false,
    )
  }

  final(outputEncoding?: unknown): NodeBuffer | string {
    if (this.hasEnded) throw invalidState('final')
    this.hasEnded = true
    return this.#encoded(new Uint8Array(native(() => natives.cipherFinal(this.handle))), outputEncoding, true)
  }

  #encoded(bytes: Bytes, encoding: unknown, isLast: boolean): NodeBuffer | string {
    if (encoding === undefined || encoding === null || encoding === 'buffer') return toBuffer(bytes)
    const named = environment.decoder(toText(encoding))
    const decoder = (this.#decoder ??= named)
    if (decoder.encoding !== named.encoding) {
      const message = `The argument 'outputEncoding' cannot be changed from '${decoder.encoding}'. Received '${toText(encoding)}'`
      throw nodeError('ERR_INVALID_ARG_VALUE', message, TypeError)
    }
    return isLast ? decoder.end(toBuffer(bytes)) : decoder.write(toBuffer(bytes))
  }

  setAutoPadding(pads: unknown = true): this {
    if (this.hasEnded) throw invalidState('setAutoPadding')
    natives.cipherPadding(this.handle, Boolean(pads))
    return this
  }

  setAAD(data: unknown, options?: { encoding?: string }): this {
    const bytes = toBytes(data, 'buffer', options?.encoding)
    if (this.hasEnded || !this.isAuthenticated) throw invalidState('setAAD')
    native(() => authenticate(this.handle, bytes))
    return this
  }
}

export class Cipheriv extends Pieces {
  #tag: NodeBuffer | undefined

  constructor(name: unknown, key: unknown, iv: unknown, options?: CipherOptions) {
    super(true, name, key, iv, options)
  }

  getAuthTag(): NodeBuffer {
    if (!this.hasEnded || !this.isAuthenticated) throw invalidState('getAuthTag')
    return (this.#tag ??= toBuffer(natives.cipherTag(this.handle)))
  }
}

export class Decipheriv extends Pieces {
  #hasTag = false

  constructor(name: unknown, key: unknown, iv: unknown, options?: CipherOptions) {
    super(false, name, key, iv, options)
  }

  setAuthTag(tag: unknown, encoding?: unknown): this {
    const bytes = toBytes(tag, 'buffer', encoding)
    if (this.hasEnded || !this.isAuthenticated || this.#hasTag) throw invalidState('setAuthTag')
    if (!isValidTag(this.mode, bytes.length) || (this.tagLength !== undefined && bytes.length !== this.tagLength)) {
      throw invalidTag(bytes.length)
    }
    if (!natives.cipherSetTag(this.handle, bytes)) throw invalidTag(bytes.length)
    this.#hasTag = true
    return this
  }
}

interface Pushing {
  push(chunk: unknown): void
  update(data: unknown, encoding?: unknown): unknown
  final(): unknown
}

type Done = (error: Error | null, chunk?: unknown) => void

function transform(self: Pushing): object {
  const attempt = (done: Done, run: () => unknown): void => {
    let chunk: unknown
    try {
      chunk = run()
    } catch (error) {
      return done(error as Error)
    }
    done(null, chunk)
  }
  return {
    transform: (chunk: unknown, encoding: unknown, done: Done) => attempt(done, () => self.update(chunk, encoding)),
    flush: (done: Done) => attempt(done, () => self.final()),
  }
}

streamAtUse(Pieces, 'Transform', transform)

export function createCipheriv(name: unknown, key: unknown, iv: unknown, options?: CipherOptions): Cipheriv {
  return new Cipheriv(name, key, iv, options)
}

export function createDecipheriv(name: unknown, key: unknown, iv: unknown, options?: CipherOptions): Decipheriv {
  return new Decipheriv(name, key, iv, options)
}
