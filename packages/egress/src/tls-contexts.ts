import { constants, createHash, createPrivateKey, type KeyObject } from 'node:crypto'
import { createSecureContext, DEFAULT_CIPHERS, type SecureContext, type SecureContextOptions } from 'node:tls'
import type { Holder, TlsOptions } from '@carpool/core'
import { codeOf, failure, refusal } from './failure.ts'
import type { StreamMemory } from './stream-memory.ts'

/** How a connection speaks TLS. */
export interface ReadyTls extends Pick<TlsOptions, 'serverName' | 'isVerified' | 'alpn'> {
  /** With the function's own certificates, if it has any. */
  readonly context: SecureContext
}

/**
 * What a peer may not have this thread compute. With DHE it chooses the size of the numbers: up to a second for one handshake.
 * Nobody needs it who has ECDHE. To agree anew, as TLS 1.2 could, is as much work as a handshake, and a peer may ask for it again
 * and again.
 */
const BOUNDS: SecureContextOptions = { ciphers: `${DEFAULT_CIPHERS}:!kDHE`, secureOptions: constants.SSL_OP_NO_RENEGOTIATION }

/** Certificates of one text. More than that have no room in the options, unless they are made to cost much. */
const MAX_CERTIFICATES = 256
/** Of the function itself, with those that it was issued by. */
const MAX_OWN_CERTIFICATES = 16
/** A number of 4096 bits in base64url: each handshake computes with the key. */
const MAX_NUMBER_LENGTH = 683
/** Of a key that needs a passphrase. */
const ENCRYPTED_CODES = new Set(['ERR_MISSING_PASSPHRASE', 'ERR_OSSL_CRYPTO_INTERRUPTED_OR_CANCELLED'])
/** What a context takes of memory, for each character of its texts. */
const BYTES_PER_CHARACTER = 4
/** How many that no socket uses are kept, for the next one that is alike. */
const MAX_IDLE = 16

interface Shared {
  readonly key: string
  readonly context: SecureContext
  readonly bytes: number
  users: number
}

/**
 * The certificates and keys of functions, as OpenSSL wants them. To make that of a large company takes this thread as long as
 * hundreds of fetches, so sockets of one function with the same texts share it.
 */
export class TlsContexts {
  readonly #memory: StreamMemory
  readonly #all = new Map<string, Shared>()
  /** Oldest first. */
  readonly #idle = new Set<Shared>()
  #common: SecureContext | undefined

  constructor(memory: StreamMemory) {
    this.#memory = memory
  }

  /** Of all connections for which a function has no certificates of its own. */
  get common(): SecureContext {
    return (this.#common ??= createSecureContext(BOUNDS))
  }

  /** A socket will want them. @throws failure if there is no memory for it */
  claim(holder: Holder, options: TlsOptions): TlsClaim {
    return new TlsClaim(this, this.#memory, holder, options)
  }

  /** @throws refusal, failure, or an error of OpenSSL */
  take(holder: Holder, { ca, cert, key }: TlsOptions): Shared {
    const hash = createHash('sha256')
      .update(JSON.stringify([holder.owner, holder.functionName, ca, cert, key]))
      .digest('base64')
    const known = this.#all.get(hash)
    const bytes = known?.bytes ?? textLength({ ca, cert, key }) * BYTES_PER_CHARACTER
    if ((known?.users ?? 0) === 0 && !this.#memory.tryTake(holder, bytes)) throw failure('memory-full')
    try {
      const shared = known ?? { key: hash, context: create({ ca, cert, key }), bytes, users: 0 }
      shared.users += 1
      this.#idle.delete(shared)
      this.#all.set(hash, shared)
      return shared
    } catch (cause) {
      this.#memory.give(holder, bytes)
      throw cause
    }
  }

  give(holder: Holder, shared: Shared): void {
    shared.users -= 1
    if (shared.users > 0) return
    this.#memory.give(holder, shared.bytes)
    this.#idle.add(shared)
    const [oldest] = this.#idle
    if (this.#idle.size <= MAX_IDLE || oldest === undefined) return
    this.#idle.delete(oldest)
    this.#all.delete(oldest.key)
  }
}

/** The TLS of one socket, from when it is asked for until the socket is closed. */
export class TlsClaim {
  readonly #contexts: TlsContexts
  readonly #memory: StreamMemory
  readonly #holder: Holder
  #options: TlsOptions | undefined
  #textBytes: number
  #shared: Shared | undefined

  constructor(contexts: TlsContexts, memory: StreamMemory, holder: Holder, options: TlsOptions) {
    this.#contexts = contexts
    this.#memory = memory
    this.#holder = holder
    this.#options = options
    // They are there twice: as they came and as they were read.
    this.#textBytes = textLength(options) * 2
    if (!memory.tryTake(holder, this.#textBytes)) throw failure('memory-full')
  }

  /** To be called once, in a turn of its owner. @throws refusal, failure, or an error of OpenSSL */
  make(): ReadyTls {
    const { serverName, isVerified, alpn, ...texts } = this.#options!
    const ready = { serverName, isVerified, alpn }
    if (textLength(texts) === 0) return { ...ready, context: this.#contexts.common }
    this.#shared = this.#contexts.take(this.#holder, this.#options!)
    this.#dropTexts()
    return { ...ready, context: this.#shared.context }
  }

  release(): void {
    this.#dropTexts()
    if (this.#shared !== undefined) this.#contexts.give(this.#holder, this.#shared)
    this.#shared = undefined
  }

  #dropTexts(): void {
    this.#options = undefined
    this.#memory.give(this.#holder, this.#textBytes)
    this.#textBytes = 0
  }
}

type Texts = Partial<Record<'ca' | 'cert' | 'key', string | undefined>>

function textLength({ ca = '', cert = '', key = '' }: Texts): number {
  return ca.length + cert.length + key.length
}

function create({ ca, cert, key }: Texts): SecureContext {
  checkCount(ca, MAX_CERTIFICATES)
  checkCount(cert, MAX_OWN_CERTIFICATES)
  return createSecureContext({
    ...BOUNDS,
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key: plainKey(key) }),
  })
}

function checkCount(text: string | undefined, max: number): void {
  if (text !== undefined && text.split('-----BEGIN', max + 2).length > max + 1) {
    throw refusal(`The certificates of a socket are too many; the limit is ${max}.`)
  }
}

/**
 * The key, written anew. Whoever makes a key chooses how much work it is to sign with it, and whoever encrypts one how much to
 * decrypt it: a context tries that even without a passphrase.
 */
function plainKey(text: string): string {
  const key = read(text)
  if (!isSmall(key)) throw refusal('The key of a socket must be of RSA with up to 4096 bits, of a NIST curve, Ed25519 or Ed448.')
  return key.export({ type: 'pkcs8', format: 'pem' })
}

function read(text: string): KeyObject {
  try {
    return createPrivateKey(text)
  } catch (cause) {
    if (!ENCRYPTED_CODES.has(codeOf(cause))) throw cause
    throw refusal('The key of a socket is encrypted. Decrypt it before: node:crypto can, and node:tls with the passphrase.')
  }
}

function isSmall(key: KeyObject): boolean {
  try {
    return Object.values(key.export({ format: 'jwk' })).every((number) => String(number).length <= MAX_NUMBER_LENGTH)
  } catch {
    // Of a kind or curve that a JWK cannot have.
    return false
  }
}
