import { isIP, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { ConnectedSocket, Holder } from '@carpool/core'
import { failure } from './failure.ts'
import type { Connect } from './guarded-connector.ts'
import type { Secure, SecureOptions } from './secure.ts'
import type { ReadyTls } from './tls-contexts.ts'

export interface PeerEvents {
  /** The connection is there, or speaks TLS now. */
  connected(socket: ConnectedSocket): void
  data(bytes: Buffer): void
  /** The peer sends no more. */
  ended(): void
  /** Called once, at last. @param cause absent: both sides have ended, or it was destroyed without a cause */
  closed(cause: Error | undefined): void
}

export interface PeerTarget {
  /** A name, or an address without brackets. */
  readonly host: string
  readonly port: number
  readonly tls?: ReadyTls | undefined
}

export interface PeerSocketParts {
  readonly holder: Holder
  readonly connect: Connect
  readonly secure: Secure
  readonly tlsTimeoutMs: number
  readonly events: PeerEvents
}

/** One TCP connection to a peer, that may speak TLS from its beginning or later on. */
export class PeerSocket {
  readonly #parts: PeerSocketParts
  readonly #target: PeerTarget
  #socket: Socket | undefined
  #tls: TLSSocket | undefined
  #tlsTimer: NodeJS.Timeout | undefined
  #cause: Error | undefined
  /** The one of both that is read. */
  #reading: Socket | undefined
  #isPaused = false
  #isClosed = false

  constructor(target: PeerTarget, parts: PeerSocketParts) {
    this.#target = target
    this.#parts = parts
    const { host, port, tls } = target
    this.#socket = parts.connect(
      { hostname: host, port: String(port), protocol: 'tcp:', holder: parts.holder },
      (error, socket) => {
        if (socket === null) return this.#fail(error ?? failure('aborted'))
        if (tls !== undefined) {
          this.awaitTls()
          return this.startTls(tls)
        }
        this.#attach(socket)
        parts.events.connected(describe(socket))
      },
    )
    // The reason of an end comes before it; a socket that was refused has neither.
    this.#socket
      ?.on('error', (cause) => (this.#cause ??= cause))
      .once('close', () => {
        // TLS may still have what the function has not read; it goes when that is read, or with the cause.
        if (this.#tls === undefined) this.#close()
      })
  }

  get #active(): Socket | undefined {
    return this.#tls ?? this.#socket
  }

  write(bytes: Uint8Array, taken: () => void): void {
    this.#active?.write(bytes, (error) => {
      if (error === null || error === undefined) taken()
    })
  }

  /** @param left called when the system has taken all that was written, or never will */
  end(left: () => void): void {
    this.#active?.end(left)
  }

  pause(): void {
    this.#isPaused = true
    this.#reading?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#reading?.resume()
  }

  /** Whether it can begin to speak TLS. */
  get isPlain(): boolean {
    return this.#tlsTimer === undefined && this.#socket?.readyState === 'open'
  }

  /**
   * Reads nothing more in the clear: what was not read yet belongs to TLS. {@link startTls} follows, and there is one time for
   * both.
   */
  awaitTls(): void {
    this.#socket?.pause().removeAllListeners('data').removeAllListeners('end')
    this.#reading = undefined
    this.#tlsTimer = setTimeout(() => this.destroy(failure('tls-timed-out')), this.#parts.tlsTimeoutMs)
  }

  /** Speaks TLS from here on. */
  startTls(options: ReadyTls): void {
    const { host } = this.#target
    const raw = this.#socket!
    if (raw.destroyed) return
    try {
      const { holder, secure } = this.#parts
      const tls = secure(raw, { holder, allowHalfOpen: true, ...verification(host, options) })
      this.#tls = tls
      tls
        // Node.js leaves it open if it was open before.
        .on('error', (cause) => this.destroy(cause))
        .once('secureConnect', () => {
          clearTimeout(this.#tlsTimer)
          this.#attach(tls)
          this.#parts.events.connected({ ...describe(raw), tls: describeTls(tls) })
        })
        .once('close', () => {
          raw.destroy()
          this.#close()
        })
    } catch (cause) {
      // A server name that none may be.
      this.destroy(cause as Error)
    }
  }

  /** Ends it at once, in any state. */
  destroy(cause?: Error): void {
    if (cause !== undefined) this.#cause ??= cause
    this.#tls?.destroy()
    this.#socket?.destroy()
  }

  /** Ends it so that the peer sees that it broke off, where the system can say so. */
  reset(): void {
    if (this.isPlain) this.#socket?.resetAndDestroy()
    else this.destroy()
  }

  #attach(socket: Socket): void {
    const { events } = this.#parts
    this.#reading = socket
    socket.on('data', (bytes: Buffer) => events.data(bytes)).once('end', () => events.ended())
    if (this.#isPaused) socket.pause()
  }

  #fail(cause: Error): void {
    this.#cause ??= cause
    // One that was refused never was a socket.
    if (this.#socket === undefined) this.#close()
    else this.#socket.destroy()
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#tlsTimer)
    this.#parts.events.closed(this.#cause)
  }
}

function verification(host: string, options: ReadyTls): Omit<SecureOptions, 'holder' | 'allowHalfOpen'> {
  const { serverName, isVerified, alpn, context } = options
  const name = (serverName === '' ? host : serverName).replace(/\.$/, '')
  return {
    // The certificate must be for it.
    host: name,
    ...(isIP(name) === 0 && { servername: name }),
    rejectUnauthorized: isVerified,
    ...(alpn.length > 0 && { ALPNProtocols: [...alpn] }),
    secureContext: context,
  }
}

function describe({ remoteAddress = '', remotePort = 0 }: Socket): ConnectedSocket {
  return { remoteAddress, remotePort }
}

function describeTls(socket: TLSSocket): NonNullable<ConnectedSocket['tls']> {
  const { authorized, authorizationError } = socket
  return {
    protocol: socket.getProtocol() ?? '',
    cipher: socket.getCipher().name,
    alpn: socket.alpnProtocol ?? false,
    isAuthorized: authorized,
    ...(!authorized && { authorizationError: nameOf(authorizationError) }),
    certificate: socket.getPeerX509Certificate()?.raw.toString('base64') ?? '',
  }
}

/** Node gives a code, although its types say that it is an error. */
function nameOf(error: unknown): string {
  return error instanceof Error ? ('code' in error ? String(error.code) : error.message) : String(error)
}
