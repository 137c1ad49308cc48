/** The module `cloudflare:sockets`: sockets as streams of the web. */
import type { ConnectedSocket, OpenSocket, SocketEnd, TlsOptions } from '@carpool/core'
import { support } from '../support.ts'

support.tellCallsApart()

type Bytes = Uint8Array<ArrayBuffer>

interface SocketAddress {
  readonly hostname: string
  readonly port: number
}

interface TlsChoice {
  /** Name that the certificate must be for. Default: that of the address. */
  readonly sni?: string
  readonly expectedServerHostname?: string
  readonly alpn?: readonly string[]
}

interface SocketOptions extends TlsChoice {
  readonly secureTransport?: 'off' | 'on' | 'starttls'
  readonly allowHalfOpen?: boolean
}

interface SocketInfo {
  readonly remoteAddress: string
  readonly localAddress: undefined
  readonly alpn: string | null
}

/** What a socket has from the one that it was before it spoke TLS. */
interface Before {
  readonly socket: OpenSocket
  readonly listen: (listener: Listener) => void
  /** It is connected, and speaks no TLS yet. */
  readonly connected: (info: ConnectedSocket) => void
}

interface Listener {
  connected(info: ConnectedSocket): void
  data(bytes: Bytes): void
  ended(): void
  room(): void
  closed(end: SocketEnd): void
}

class Socket {
  readonly readable: ReadableStream<Bytes>
  readonly writable: WritableStream<Uint8Array | ArrayBuffer>
  /** Its address, once it is connected; rejected if it never is. */
  readonly opened: Promise<SocketInfo>
  /** Resolves when it has ended, and is rejected if that was an error. */
  readonly closed: Promise<void>
  readonly secureTransport: 'off' | 'on' | 'starttls'
  upgraded = false
  readonly #hostname: string
  readonly #allowHalfOpen: boolean
  readonly #opened = Promise.withResolvers<SocketInfo>()
  readonly #closed = Promise.withResolvers<void>()
  readonly #socket: OpenSocket
  #listen: (listener: Listener) => void = () => {}
  #arrived: Bytes[] = []
  #isConnected = false
  /** A chunk waits for the connection. */
  #isWriting = false
  #hasEnded = false
  #isOver = false
  #failure: Error | undefined
  #wake: (() => void) | undefined
  #wakeWriter: (() => void) | undefined
  #writer: WritableStreamDefaultController | undefined

  constructor({ hostname, port }: SocketAddress, options: SocketOptions, before?: Before) {
    const { secureTransport = 'off', allowHalfOpen = false } = options
    this.secureTransport = secureTransport
    this.#hostname = hostname
    this.#allowHalfOpen = allowHalfOpen
    this.opened = this.#opened.promise
    this.closed = this.#closed.promise
    // Nobody has to look at them.
    this.opened.catch(() => {})
    this.closed.catch(() => {})
    const own: Listener = {
      connected: (info) => {
        if (before !== undefined && info.tls === undefined) before.connected(info)
        else this.#connected(info)
      },
      data: (bytes) => {
        this.#arrived.push(bytes)
        this.#wake?.()
      },
      ended: () => this.#ended(),
      room: () => this.#wakeWriter?.(),
      closed: (end) => this.#finish(end),
    }
    if (before === undefined) {
      let listener = own
      this.#listen = (next) => (listener = next)
      this.#socket = support.openSocket(
        { kind: 'tcp', host: hostname, port, ...(secureTransport === 'on' && { tls: tlsOf(hostname, options) }) },
        {
          connected: (info) => listener.connected(info),
          data: (bytes) => listener.data(bytes),
          ended: () => listener.ended(),
          room: () => listener.room(),
          closed: (end) => listener.closed(end),
        },
      )
    } else {
      this.#socket = before.socket
      before.listen(own)
    }
    this.readable = new ReadableStream<Bytes>(
      {
        type: 'bytes' as never,
        pull: (controller) => this.#pull(controller as never),
        cancel: () => this.#readingEnded(),
      },
      { highWaterMark: 0 },
    )
    this.writable = new WritableStream<Uint8Array | ArrayBuffer>({
      start: (controller) => void (this.#writer = controller),
      write: (chunk) => this.#write(chunk),
      close: () => this.#socket.end(),
      abort: () => void this.close(),
    })
  }

  /** Ends it. What was written before still leaves. */
  async close(): Promise<void> {
    if (!this.#isOver) {
      this.#socket.end()
      this.#socket.stop()
      this.#finish({ ok: true })
    }
    return this.closed
  }

  /** Speaks TLS from here on, by another socket: this one ends. */
  startTls(options: TlsChoice = {}): Socket {
    if (this.secureTransport !== 'starttls') throw new TypeError("Only a socket with secureTransport 'starttls' can start TLS.")
    if (this.upgraded || this.#isOver) throw new TypeError('The socket cannot start TLS: it has ended.')
    if (this.#isWriting) throw new TypeError('The socket cannot start TLS while a chunk waits for the connection.')
    const tls = tlsOf(this.#hostname, options)
    if (this.#isConnected) this.#socket.startTls(tls)
    this.upgraded = true
    this.#isOver = true
    this.#hasEnded = true
    this.#wake?.()
    this.#wakeWriter?.()
    this.#writer?.error(new TypeError('The socket speaks TLS now.'))
    this.#closed.resolve()
    const connected = (info: ConnectedSocket): void => {
      this.#connected(info)
      this.#socket.startTls(tls)
    }
    const next = new Socket(
      { hostname: this.#hostname, port: 0 },
      { ...options, secureTransport: 'on', allowHalfOpen: this.#allowHalfOpen },
      { socket: this.#socket, listen: this.#listen, connected },
    )
    // If it never was connected.
    next.opened.catch((error: unknown) => this.#opened.reject(error))
    return next
  }

  #connected({ remoteAddress, remotePort, tls }: ConnectedSocket): void {
    this.#isConnected = true
    const address = remoteAddress.includes(':') ? `[${remoteAddress}]` : remoteAddress
    this.#opened.resolve({ remoteAddress: `${address}:${remotePort}`, localAddress: undefined, alpn: tls?.alpn || null })
  }

  async #pull(controller: {
    enqueue(bytes: Bytes): void
    close(): void
    error(error: Error): void
    byobRequest: unknown
  }): Promise<void> {
    while (this.#arrived.length === 0 && !this.#hasEnded && this.#failure === undefined) {
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    const bytes = this.#arrived.shift()
    if (bytes !== undefined) {
      this.#socket.took(bytes.length)
      controller.enqueue(bytes)
    } else if (this.#failure !== undefined) {
      controller.error(this.#failure)
    } else {
      controller.close()
      const request = controller.byobRequest as { respond(size: number): void } | null
      request?.respond(0)
    }
  }

  async #write(chunk: Uint8Array | ArrayBuffer): Promise<void> {
    const bytes = ArrayBuffer.isView(chunk)
      ? new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)
      : chunk instanceof ArrayBuffer
        ? new Uint8Array(chunk)
        : undefined
    if (bytes === undefined) throw new TypeError('A socket takes bytes: an ArrayBuffer or a view of one.')
    this.#isWriting = true
    try {
      await this.opened
    } finally {
      this.#isWriting = false
    }
    if (this.#hasEnded && !this.#allowHalfOpen) throw this.#failure ?? new TypeError('The other side has ended the socket.')
    this.#socket.send(bytes)
    while (!this.#isOver && this.#socket.isFull) await new Promise<void>((resolve) => (this.#wakeWriter = resolve))
    if (this.#failure !== undefined) throw this.#failure
  }

  #ended(): void {
    this.#hasEnded = true
    this.#wake?.()
    if (!this.#allowHalfOpen) this.#socket.end()
  }

  #readingEnded(): void {
    if (!this.#allowHalfOpen) void this.close()
  }

  #finish(end: SocketEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#hasEnded = true
    if (end.ok) {
      this.#opened.reject(new TypeError('The socket was closed before it was connected.'))
      this.#writer?.error(new TypeError('The socket has ended.'))
      this.#closed.resolve()
    } else {
      this.#failure = Object.assign(new TypeError(end.message), { code: end.code })
      this.#opened.reject(this.#failure)
      this.#writer?.error(this.#failure)
      this.#closed.reject(this.#failure)
    }
    this.#wake?.()
    this.#wakeWriter?.()
  }
}

function tlsOf(hostname: string, { sni, expectedServerHostname, alpn = [] }: TlsChoice): TlsOptions {
  return { serverName: sni ?? expectedServerHostname ?? hostname, isVerified: true, alpn: [...alpn] }
}

/**
 * Opens a socket, as the Sockets API of WinterTC and Cloudflare Workers does.
 * @param address `host:port`, or its parts
 * @throws TypeError if it is no address
 */
export function connect(address: string | SocketAddress, options: SocketOptions = {}): Socket {
  const { hostname, port } = typeof address === 'string' ? partsOf(address) : address
  if (typeof hostname !== 'string' || hostname === '') throw new TypeError('The address of a socket must have a host name.')
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new TypeError(`${String(port)} is no port of a socket.`)
  const { secureTransport = 'off' } = options
  if (!['off', 'on', 'starttls'].includes(secureTransport)) {
    throw new TypeError(`secureTransport must be 'off', 'on' or 'starttls', not ${JSON.stringify(secureTransport)}.`)
  }
  return new Socket({ hostname: hostname.replace(/^\[(.*)\]$/, '$1'), port }, options)
}

function partsOf(address: string): SocketAddress {
  const [, hostname = '', port = ''] = /^(\[[^\]]*\]|[^:]*):(\d+)$/.exec(address) ?? []
  return { hostname, port: Number(port || 'NaN') }
}

export default { connect }
