/**
 * What libuv's handle of a TCP connection is to Node.js' own `net`: its methods, and what it calls. Behind it is a socket of the
 * host, which looks names up and connects as its address policy lets it.
 */
import type { ConnectedSocket, OpenSocket, SocketEnd, TlsOptions } from '@carpool/core'
import { uv } from '../internal/small-parts.ts'
import { asyncHooks } from '../internal/small-parts.ts'
import { Buffer } from '../buffer-global.ts'
import { support } from '../support.ts'

support.tellCallsApart()

type Bytes = Uint8Array<ArrayBuffer>
const codes = uv as unknown as Readonly<Record<string, number>>
const { UV_EOF, UV_EPIPE, UV_ECANCELED, UV_EACCES, UV_EINVAL } = codes as Record<string, number>

/** Where Node.js looks for what a call of the handle has found, by the numbers below. */
export const streamBaseState = new Int32Array(5)
export const kReadBytesOrError = 0
export const kArrayBufferOffset = 1
export const kBytesWritten = 2
export const kLastWriteErr = 3

/** Something that a handle does and says the end of. */
class Request {
  handle: unknown
  oncomplete: ((...args: unknown[]) => void) | undefined
}
export class ShutdownWrap extends Request {}
export class WriteWrap extends Request {
  readonly writeStatus = null
  readonly error = undefined
}
export class ConnectRequest extends Request {
  address: string | undefined
  port: number | undefined
}

interface Owner {
  destroy(error?: Error): void
}

type OnSecure = (tls: NonNullable<ConnectedSocket['tls']>) => void

/** Errors that Node.js' own code makes of their numbers. */
const BY_NUMBER = ['ECONNABORTED', 'ECONNREFUSED', 'ECONNRESET', 'EHOSTUNREACH', 'ENETUNREACH', 'EPIPE', 'ETIMEDOUT']

export class Handle {
  reading = false
  bytesRead = 0
  bytesWritten = 0
  onread: ((this: Handle, buffer?: ArrayBuffer) => void) | undefined
  /** How it is to speak TLS from the start. */
  tls: TlsOptions | undefined
  readonly fd = -1
  #socket: OpenSocket | undefined
  #connecting: ConnectRequest | undefined
  #host = ''
  #port = 0
  #peer: ConnectedSocket | undefined
  /** What came while nobody read. */
  #arrived: Bytes[] = []
  /** What is to be told when that was read: the end, or a number of an error. */
  #end: number | undefined
  #writes: WriteWrap[] = []
  #onSecure: OnSecure | undefined
  /** Written while it begins to speak TLS. */
  #held: Bytes[] | undefined
  #isEndHeld = false
  #isClosed = false

  connect(request: ConnectRequest, host: string, port: number): number {
    if (this.#socket !== undefined || this.#isClosed) return UV_EINVAL!
    this.#connecting = request
    this.#host = host
    this.#port = port
    const target = { kind: 'tcp', host, port, ...(this.tls !== undefined && { tls: this.tls }) } as const
    try {
      this.#socket = support.openSocket(target, {
        connected: (info) => this.#connected(info),
        data: (bytes) => this.#came(bytes),
        ended: () => this.#ended(UV_EOF!),
        room: () => this.#hasRoom(),
        closed: (end) => this.#closed(end),
      })
    } catch {
      // Too many are open.
      this.#connecting = undefined
      return codes['UV_EMFILE']!
    }
    return 0
  }
  connect6(request: ConnectRequest, host: string, port: number): number {
    return this.connect(request, host, port)
  }
  bind(): number {
    return UV_EACCES!
  }
  bind6(): number {
    return UV_EACCES!
  }
  open(): number {
    return UV_EINVAL!
  }

  readStart(): number {
    this.reading = true
    const hadArrived = this.#arrived.length > 0
    while (this.reading && this.#arrived.length > 0) this.#give(this.#arrived.shift()!)
    if (!hadArrived) this.#tellEnd()
    // As in Node.js, whoever awaits the last data has gone on by then.
    else if (this.#end !== undefined) support.afterEntry(() => this.#tellEnd())
    return 0
  }
  readStop(): number {
    this.reading = false
    return 0
  }

  writeBuffer(_request: null, bytes: Uint8Array): number | WriteWrap {
    return this.#write([bytes as Bytes])
  }
  writeUtf8String(_request: null, text: string): number | WriteWrap {
    return this.#write([Buffer.from(text, 'utf8') as Bytes])
  }
  writeLatin1String(_request: null, text: string): number | WriteWrap {
    return this.#write([Buffer.from(text, 'latin1') as Bytes])
  }
  writeAsciiString(_request: null, text: string): number | WriteWrap {
    return this.#write([Buffer.from(text, 'latin1') as Bytes])
  }
  writeUcs2String(_request: null, text: string): number | WriteWrap {
    return this.#write([Buffer.from(text, 'utf16le') as Bytes])
  }
  /** @param chunks buffers, or chunks each with its encoding behind it */
  writev(_request: null, chunks: readonly unknown[], areBuffers: boolean): number | WriteWrap {
    const list: Bytes[] = []
    for (let index = 0; index < chunks.length; index += areBuffers ? 1 : 2) {
      const chunk = chunks[index]
      list.push((typeof chunk === 'string' ? Buffer.from(chunk, chunks[index + 1] as BufferEncoding) : chunk) as Bytes)
    }
    return this.#write(list)
  }
  get writeQueueSize(): number {
    return this.#writes.length
  }

  shutdown(request: ShutdownWrap): number {
    if (this.#isClosed) return codes['UV_ENOTCONN']!
    if (this.#held === undefined) this.#socket?.end()
    else this.#isEndHeld = true
    process.nextTick(() => request.oncomplete?.(0))
    return 0
  }

  close(done?: () => void): void {
    this.#finish()
    // Before anything else of the function runs, as in Node.js no timer does: it may take a socket that has ended for a good one.
    if (done !== undefined) support.afterEntry(done)
  }
  reset(done?: () => void): number {
    this.close(done)
    return 0
  }

  /**
   * From here on it speaks TLS. What is written meanwhile waits for {@link release}.
   * @param onSecure called when it does; if it never does the owner is destroyed with why
   */
  startTls(options: TlsOptions, onSecure: OnSecure): void {
    this.#held = []
    this.#onSecure = onSecure
    try {
      this.#socket?.startTls(options)
    } catch (error) {
      this.#owner?.destroy(error as Error)
    }
  }
  /** The peer is who it should be: what was written may leave. */
  release(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const bytes of held) this.#socket?.send(bytes)
    if (this.#isEndHeld) this.#socket?.end()
    this.#hasRoom()
  }
  /** What is known of the TLS that it speaks. */
  get secure(): ConnectedSocket['tls'] {
    return this.#peer?.tls
  }

  getpeername(out: Record<string, unknown>): number {
    if (this.#peer === undefined) return codes['UV_ENOTCONN']!
    const { remoteAddress, remotePort } = this.#peer
    Object.assign(out, { address: remoteAddress, port: remotePort, family: remoteAddress.includes(':') ? 'IPv6' : 'IPv4' })
    return 0
  }
  /** The address on this side is the host's, and none of a function's business. */
  getsockname(out: Record<string, unknown>): number {
    Object.assign(out, { address: '0.0.0.0', port: 0, family: 'IPv4' })
    return 0
  }
  getAsyncId(): number {
    return 1
  }
  getProviderType(): number {
    return 0
  }
  setNoDelay(): number {
    return 0
  }
  setKeepAlive(): number {
    return 0
  }
  ref(): void {}
  unref(): void {}
  hasRef(): boolean {
    return true
  }
  useUserBuffer(): void {}

  get #owner(): Owner | undefined {
    return (this as unknown as Record<symbol, Owner | undefined>)[asyncHooks.symbols.owner_symbol]
  }

  #connected(info: ConnectedSocket): void {
    this.#peer = info
    const request = this.#connecting
    if (request === undefined) {
      const onSecure = this.#onSecure
      this.#onSecure = undefined
      if (info.tls !== undefined) onSecure?.(info.tls)
      return
    }
    this.#connecting = undefined
    request.oncomplete?.(0, this, request, true, true)
  }

  #came(bytes: Bytes): void {
    if (this.reading && this.#arrived.length === 0) this.#give(bytes)
    else this.#arrived.push(bytes)
  }

  #give(bytes: Bytes): void {
    this.bytesRead += bytes.length
    this.#socket?.took(bytes.length)
    streamBaseState[kReadBytesOrError] = bytes.length
    streamBaseState[kArrayBufferOffset] = bytes.byteOffset
    this.onread?.(bytes.buffer)
  }

  #ended(code: number): void {
    // The reason of an end comes behind the end of what is read.
    if (this.#end !== undefined) return
    this.#end = code
    this.#tellEnd()
  }

  /** Once what came before it was read. */
  #tellEnd(): void {
    const code = this.#end
    if (code === undefined || code === 0 || !this.reading || this.#arrived.length > 0) return
    this.#end = 0
    streamBaseState[kReadBytesOrError] = code
    this.onread?.()
  }

  #write(chunks: readonly Bytes[]): number | WriteWrap {
    let size = 0
    for (const bytes of chunks) size += bytes.length
    streamBaseState[kBytesWritten] = size
    streamBaseState[kLastWriteErr] = 0
    if (this.#isClosed || this.#socket === undefined) return UV_EPIPE!
    this.bytesWritten += size
    for (const bytes of chunks) {
      // The caller may change its buffer when it has been told that it is written.
      if (this.#held !== undefined) this.#held.push(bytes.slice())
      else this.#socket.send(bytes)
    }
    if (this.#held === undefined && !this.#socket.isFull) return 0
    const request = new WriteWrap()
    this.#writes.push(request)
    return request
  }

  #hasRoom(): void {
    if (this.#held !== undefined) return
    this.#completeWrites(0)
  }

  #completeWrites(status: number): void {
    const writes = this.#writes
    this.#writes = []
    for (const request of writes) request.oncomplete?.(status)
  }

  #closed(end: SocketEnd): void {
    const request = this.#connecting
    this.#connecting = undefined
    this.#isClosed = true
    const code = end.ok ? undefined : end.code
    if (request !== undefined) {
      if (code !== undefined && BY_NUMBER.includes(code)) request.oncomplete?.(codes[`UV_${code}`], this, request, false, false)
      else this.#owner?.destroy(this.#errorOf(end))
      return
    }
    if (code === undefined || BY_NUMBER.includes(code)) {
      const number = code === undefined ? UV_EOF! : codes[`UV_${code}`]!
      this.#completeWrites(code === undefined ? UV_EPIPE! : number)
      if (code !== undefined && this.#onSecure === undefined && this.#end === UV_EOF) this.#end = undefined
      return this.#ended(number)
    }
    this.#owner?.destroy(this.#errorOf(end))
    this.#completeWrites(UV_ECANCELED!)
  }

  /** Of an end that has no number, as a name that is not known, an address that is refused, or a certificate that is wrong. */
  #errorOf(end: SocketEnd): Error {
    const { code, message } = end.ok ? { code: 'ECONNRESET', message: 'The connection has ended.' } : end
    if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
      const error = new Error(`getaddrinfo ${code} ${this.#host}`)
      return Object.assign(error, { errno: codes[`UV_EAI_${code}`] ?? -3008, code, syscall: 'getaddrinfo', hostname: this.#host })
    }
    const place =
      code.startsWith('E') && !code.startsWith('ERR_') ? { syscall: 'connect', address: this.#host, port: this.#port } : {}
    return Object.assign(new Error(message), { code, ...place })
  }

  #finish(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#arrived = []
    this.#end = 0
    this.#connecting = this.#onSecure = undefined
    this.#socket?.stop()
    // Those who wait for a write hear that it was given up, after whoever closes has gone on.
    if (this.#writes.length > 0) process.nextTick(() => this.#completeWrites(UV_ECANCELED!))
  }
}

export const tcp = {
  TCP: Handle,
  TCPConnectWrap: ConnectRequest,
  constants: { SOCKET: 0, SERVER: 1, UV_TCP_IPV6ONLY: 1, UV_TCP_REUSEPORT: 2 },
}

/** There are no files, so no sockets in them either. */
class Pipe extends Handle {
  override connect(): number {
    return UV_EACCES!
  }
}
export const pipe = { Pipe, PipeConnectWrap: ConnectRequest, constants: { SOCKET: 0, SERVER: 1, IPC: 2 } }

export const streamWrap = {
  kReadBytesOrError,
  kArrayBufferOffset,
  kBytesWritten,
  kLastWriteErr,
  streamBaseState,
  ShutdownWrap,
  WriteWrap,
  LibuvStreamWrap: Handle,
}
