/**
 * TLS connections as `node:tls` makes them. The host speaks TLS, so that keys of connections are in no isolate; it verifies the
 * peer, and what it found is told here.
 */
import net from 'carpool-node:own/net'
import type { ConnectedSocket, TlsOptions } from '@carpool/core'
import addresses from '../internal/addresses.ts'
import { Buffer } from '../buffer-global.ts'
import { refuse } from '../refuse.ts'
import { parseCertificate, type PeerCertificate } from './certificate.ts'
import { Handle } from './handle.ts'
import { type ContextOptions, createSecureContext, SecureContext } from './secure-context.ts'

type Secured = NonNullable<ConnectedSocket['tls']>
type Listener = (...args: unknown[]) => void
type CheckIdentity = (name: string, certificate: PeerCertificate) => Error | undefined

/** What is used of Node.js' own class. */
interface SocketBase {
  connecting: boolean
  allowHalfOpen: boolean
  destroyed: boolean
  _handle: Handle | null
  _hadError: boolean
  on(event: string, listener: Listener): this
  once(event: string, listener: Listener): this
  off(event: string, listener: Listener): this
  prependListener(event: string, listener: Listener): this
  prependOnceListener(event: string, listener: Listener): this
  emit(event: string, ...args: unknown[]): boolean
  destroy(error?: Error): this
  read(size?: number): unknown
  setTimeout(ms: number): this
  connect(options: object): this
}

interface ConnectOptions extends ContextOptions {
  readonly host?: string
  readonly port?: number | string
  readonly path?: string
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
  readonly checkServerIdentity?: CheckIdentity
  readonly secureContext?: SecureContext
  readonly socket?: SocketBase
  readonly timeout?: number
  readonly allowHalfOpen?: boolean
  readonly ALPNProtocols?: readonly (string | Uint8Array)[] | Uint8Array
}

const { Socket, _normalizeArgs: normalizeArgs } = net as unknown as {
  readonly Socket: new (options: object) => SocketBase
  readonly _normalizeArgs: (args: readonly unknown[]) => [ConnectOptions, (() => void) | null]
}

const WHY = 'it speaks TLS as a client, over its own sockets'
const NAME_IS_WRONG = 'ERR_TLS_CERT_ALTNAME_INVALID'

export class TLSSocket extends Socket {
  readonly encrypted = true
  authorized = false
  authorizationError: string | null = null
  secureConnecting = true
  alpnProtocol: string | false | null = null
  servername: string | null = null
  #options: ConnectOptions = {}
  #secured: Secured | undefined

  constructor(socket?: SocketBase | null, options: ConnectOptions = {}) {
    super({
      ...options,
      allowHalfOpen: socket?.allowHalfOpen ?? options.allowHalfOpen,
      manualStart: true,
    })
    if (options['isServer'] === true) refuse('tls', WHY, ['TLSSocket of a server'])['TLSSocket of a server']!()
    this.prependListener('end', () => this.#endedEarly())
  }

  /** @internal Connects, or speaks TLS on the socket of the options. */
  _begin(options: ConnectOptions): void {
    this.#options = options
    this.servername = options.servername ?? null
    const { socket } = options
    if (socket !== undefined && socket !== null) return this.#beginOn(socket)
    const handle = new Handle()
    handle.tls = tlsOptionsOf(options)
    ;(this as unknown as Record<symbol, (handle: Handle) => void>)[addresses.kReinitializeHandle]!(handle)
    this.prependOnceListener('connect', () => {
      const { secure } = handle
      if (secure !== undefined) this.#verify(secure)
    })
    if (options.timeout) this.setTimeout(options.timeout)
    this.connect({ ...options, socket: undefined })
  }

  #beginOn(socket: SocketBase): void {
    // Each ends with the other.
    socket.once('close', () => this.destroy())
    this.once('close', () => socket.destroy())
    socket.on('error', (error) => this.destroy(error as Error))
    if (socket.connecting) {
      this.connecting = true
      socket.once('connect', () => {
        this.connecting = false
        if (this.destroyed) return
        this.#take(socket)
        this.emit('connect')
      })
      return
    }
    this.#take(socket)
  }

  #take(socket: SocketBase): void {
    const handle = socket._handle
    if (!(handle instanceof Handle) || handle.secure !== undefined) {
      refuse('tls', `${WHY}, and not over another stream`, ['connect'])['connect']!()
    }
    const taken = handle as Handle
    this._handle = null
    ;(this as unknown as Record<symbol, (handle: Handle) => void>)[addresses.kReinitializeHandle]!(taken)
    taken.startTls(tlsOptionsOf(this.#options), (secured) => {
      if (this.#verify(secured)) taken.release()
    })
    this.read(0)
  }

  /** @returns whether the peer is who it should be, or may be anybody */
  #verify(secured: Secured): boolean {
    const { rejectUnauthorized, checkServerIdentity, servername, host } = this.#options
    this.#secured = secured
    const failed = secured.isAuthorized ? undefined : (secured.authorizationError ?? 'CERT_REJECTED')
    let error =
      failed === undefined ? undefined : Object.assign(new Error(`The certificate is not valid: ${failed}`), { code: failed })
    if (checkServerIdentity !== undefined && (error === undefined || error.code === NAME_IS_WRONG)) {
      error = checkServerIdentity(servername || host || 'localhost', this.getPeerCertificate()) as typeof error
    }
    if (error !== undefined && error !== null) {
      this.authorizationError = error.code ?? error.message
      if (rejectUnauthorized !== false) {
        this.destroy(error)
        return false
      }
    } else {
      this.authorized = true
    }
    this.alpnProtocol = secured.alpn
    this.secureConnecting = false
    process.nextTick(() => {
      if (this.destroyed) return
      this.emit('secure')
      this.emit('secureConnect')
    })
    return true
  }

  #endedEarly(): void {
    if (!this.secureConnecting || this._hadError || this.destroyed) return
    this._hadError = true
    const error = new Error('Client network socket disconnected before secure TLS connection was established')
    const { path, host, port } = this.#options
    this.destroy(Object.assign(error, { code: 'ECONNRESET', path, host, port }))
  }

  getPeerCertificate(): PeerCertificate {
    if (this.#secured === undefined) return {} as PeerCertificate
    return parseCertificate(Buffer.from(this.#secured.certificate, 'base64'))
  }
  getProtocol(): string | null {
    return this.#secured?.protocol ?? null
  }
  getCipher(): object {
    if (this.#secured === undefined) return {}
    const { cipher: name, protocol: version } = this.#secured
    return { name, standardName: name, version }
  }
  getEphemeralKeyInfo(): object {
    return {}
  }
  getSharedSigalgs(): readonly string[] {
    return []
  }
  getCertificate(): object {
    return {}
  }
  getSession(): undefined {
    return undefined
  }
  getTLSTicket(): undefined {
    return undefined
  }
  getFinished(): undefined {
    return undefined
  }
  getPeerFinished(): undefined {
    return undefined
  }
  isSessionReused(): boolean {
    return false
  }
  setSession(): void {}
  setServername(name: string): void {
    this.servername = name
  }
  setMaxSendFragment(): boolean {
    return true
  }
  disableRenegotiation(): void {}
  renegotiate(_options: unknown, done?: (error: Error) => void): boolean {
    const error = Object.assign(new Error('TLS cannot be renegotiated in a function.'), {
      code: 'ERR_TLS_RENEGOTIATION_DISABLED',
    })
    if (done !== undefined) process.nextTick(done, error)
    return false
  }
  enableTrace(): void {}
}

function tlsOptionsOf(options: ConnectOptions): TlsOptions {
  const { ca, cert, key } = options.secureContext ?? createSecureContext(options)
  return {
    serverName: options.servername || options.host || '',
    // Whoever checks the name in another way hears here what else is wrong.
    isVerified: options.rejectUnauthorized !== false && options.checkServerIdentity === undefined,
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    alpn: alpnOf(options.ALPNProtocols),
  }
}

/** Names, or each with its length before it as they go over the wire. */
function alpnOf(given: ConnectOptions['ALPNProtocols']): string[] {
  if (given === undefined || given === null) return []
  if (!(given instanceof Uint8Array))
    return given.map((one) => (typeof one === 'string' ? one : Buffer.from(one).toString('latin1')))
  const names: string[] = []
  for (let at = 0; at < given.length; at += 1 + given[at]!) {
    names.push(Buffer.from(given.subarray(at + 1, at + 1 + given[at]!)).toString('latin1'))
  }
  return names
}

/** `tls.connect([port,] [host,] [options,] [listener])` */
export function connect(...args: unknown[]): TLSSocket {
  const [given, listener] = normalizeArgs(args)
  const more = [args[1], args[2]].find((one) => typeof one === 'object' && one !== null)
  const options: ConnectOptions = { ...given, ...(more as ConnectOptions | undefined) }
  const { servername } = options
  if (servername && addresses.isIP(servername) !== 0) {
    const message = `The property 'options.servername' is invalid. Setting the TLS ServerName to an IP address is not permitted. Received '${servername}'`
    throw Object.assign(new TypeError(message), { code: 'ERR_INVALID_ARG_VALUE' })
  }
  const socket = new TLSSocket(options.socket, options)
  if (listener !== null) socket.once('secureConnect', listener)
  socket._begin(options)
  return socket
}

const { Server, createServer } = refuse('tls', WHY, ['Server', 'createServer'])
export { createServer, Server }
