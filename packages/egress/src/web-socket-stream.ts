import type { Socket } from 'node:net'
import { STREAM_MESSAGE_BYTES, STREAM_WINDOW_BYTES, type Holder, type SocketEnd } from '@carpool/core'
import { WebSocket } from 'ws'
import { codeOf, failure } from './failure.ts'
import { FrameCutter } from './frame-cutter.ts'
import type { PeerAddress } from './guarded-connector.ts'
import { handshakeHeaders } from './header-policy.ts'
import { Inflow } from './inflow.ts'
import type { SocketRequest, StreamPart, StreamSide } from './messages.ts'
import { Opening } from './opening.ts'
import type { Outside } from './outside.ts'
import { READ_BYTES, readCost } from './read-turns.ts'
import { describeSocketEnd } from './socket-end.ts'
import type { WebSocketTarget } from './socket-target.ts'
import type { SocketPost } from './tcp-stream.ts'

/** Credit is given in steps of so much. */
const CREDIT_BYTES = STREAM_WINDOW_BYTES / 4
/** How long the peer gets to answer a close frame, in ms. */
const CLOSE_TIMEOUT_MS = 5_000
/** How many frames are decoded before others may have their turn. */
const FRAMES_AT_ONCE = READ_BYTES / readCost(0)
/** Of the close frame, if there is none in it that may be said. */
const NO_STATUS = 1005

type Decode = (this: Socket, bytes: Buffer) => void

/** A WebSocket that a function opens. A library speaks the protocol, over a connection that was checked. */
export class WebSocketStream {
  readonly #outside: Outside
  readonly #target: WebSocketTarget
  readonly #url: URL
  readonly #holder: Holder
  readonly #post: SocketPost
  readonly #inflow: Inflow
  readonly #opening: Opening
  readonly #frames = new FrameCutter(FRAMES_AT_ONCE)
  #connection: Socket | undefined
  #socket: WebSocket | undefined
  #isOpen = false
  /** What came before it was open. */
  #early: StreamPart[] = []
  #bytesOut = 0
  #aheadBytes = 0
  #uncredited = 0
  /** Of a message that has not come as a whole. */
  #unfinishedBytes = 0
  #cause: Error | undefined
  /** Why the connection is gone. */
  #lost: Error | undefined
  #isStopped = false
  #isClosed = false

  constructor(outside: Outside, target: WebSocketTarget, holder: Holder, post: SocketPost) {
    this.#outside = outside
    this.#target = target
    this.#url = new URL(target.url)
    this.#holder = holder
    this.#post = post
    this.#opening = new Opening(outside)
    this.#inflow = new Inflow({
      holder,
      memory: outside.memory,
      turns: outside.reads,
      source: { pause: () => this.#socket?.pause(), resume: () => this.#socket?.resume() },
      post: (part) => {
        post.data(part)
        if (part.end === true) this.#close(undefined)
        else if (this.#lost !== undefined && !this.#inflow.hasWaiting) this.#close(this.#lost)
      },
    })
  }

  /** Waits for a connection, makes it, and shakes hands. */
  async open(request: SocketRequest): Promise<void> {
    const { hostname, protocol } = this.#url
    const isSecure = protocol === 'wss:'
    const port = this.#url.port === '' ? (isSecure ? '443' : '80') : this.#url.port
    try {
      const target = { hostname, port, scheme: isSecure ? 'wss' : 'ws' } as const
      await this.#opening.wait(request, target, (cause) => this.fail(cause))
    } catch (cause) {
      return this.#close(cause as Error)
    }
    const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
    this.#connection = this.#outside.connect(
      { hostname: bare, protocol: isSecure ? 'https:' : 'http:', port, holder: this.#holder },
      (error, socket, peer) => {
        if (socket === null) this.#close(this.#cause ?? error ?? failure('aborted'))
        else this.#shakeHands(socket, request, peer)
      },
    )
  }

  startTls(): void {
    this.fail(failure('not-connected'))
  }

  receive(part: StreamPart): void {
    const cost = costOf(part)
    if (this.#isClosed) return
    if (this.#aheadBytes + cost > STREAM_WINDOW_BYTES) return this.fail(failure('window-overrun'))
    if (!this.#outside.memory.tryTake(this.#holder, cost)) return this.fail(failure('memory-full'))
    this.#aheadBytes += cost
    if (this.#isOpen) this.#send(part)
    else this.#early.push(part)
  }

  credit(bytes: number): void {
    this.#inflow.credit(bytes)
  }

  abort(side: StreamSide): void {
    if (side === 'received') this.#inflow.discard()
    else this.stop()
  }

  stop(): void {
    this.#isStopped = true
    this.fail(failure('aborted'))
  }

  fail(cause: Error): void {
    this.#cause ??= cause
    this.#opening.stop(cause)
    this.#socket?.terminate()
    this.#connection?.destroy()
    this.#close(cause)
  }

  #shakeHands(socket: Socket, { carpoolHeaders = [] }: SocketRequest, peer: PeerAddress | undefined): void {
    const { protocols, headers } = this.#target
    const { limits } = this.#outside
    try {
      this.#socket = new WebSocket(this.#url, [...protocols], {
        // With an agent, be it false, Node.js would make a connection of its own, which nobody has checked.
        createConnection: () => socket,
        headers: Object.fromEntries(joined([...handshakeHeaders(headers), ...carpoolHeaders])),
        maxHeaderSize: limits.maxHeaderBytes,
        perMessageDeflate: false,
        maxPayload: limits.maxRequestBytes,
        closeTimeout: CLOSE_TIMEOUT_MS,
      } as WebSocket.ClientOptions)
    } catch (cause) {
      // A header that none may be.
      return this.fail(cause as Error)
    }
    // Whatever else breaks is told by the socket.
    socket.on('error', (cause) => this.#broke(cause))
    this.#socket
      .on('unexpected-response', () => this.fail(failure('handshake-refused')))
      .on('open', () => this.#opened(socket, peer))
      .on('message', (data, isBinary) => this.#came(data as Buffer, isBinary))
      .on('error', (cause) => this.#broke(cause))
      .on('close', (code, reason) => this.#ended(code, reason.toString()))
  }

  /** The library's errors have codes, but for those of handshakes. */
  #broke(cause: Error): void {
    this.#cause ??= codeOf(cause) === '' ? failure('handshake-refused', cause) : cause
  }

  #opened(socket: Socket, { remoteAddress = '', remotePort = 0 }: Partial<PeerAddress> = {}): void {
    const { protocol, extensions } = this.#socket!
    this.#isOpen = true
    this.#opening.done()
    this.#post.connected(JSON.stringify({ remoteAddress, remotePort, protocol, extensions }))
    const decode = socket.listeners('data')[0] as Decode
    const pieces = (bytes: Buffer): void => this.#decode(socket, bytes, decode)
    // The library takes its listener away when it wants no more: by this property, which `once` uses too, it is this one.
    socket.off('data', decode).on('data', Object.assign(pieces, { listener: decode }))
    const early = this.#early
    this.#early = []
    for (const part of early) this.#send(part)
  }

  /**
   * Gives what has come to the library, which decodes all of it at once: in pieces of so few frames that the rest can wait for
   * its turn. A read may have thousands of frames, and the library tells of none that is empty.
   */
  #decode(socket: Socket, bytes: Buffer, decode: Decode): void {
    for (let at = 0; at < bytes.length; ) {
      // A close frame was the last that it wants.
      if (at > 0 && (this.#isClosed || socket.listenerCount('data', decode) === 0)) return
      if (at > 0 && socket.isPaused()) return socket.unshift(bytes.subarray(at))
      const { end, frames } = this.#frames.cut(bytes, at)
      this.#collects(end - at)
      this.#inflow.took(Math.max(end - at, frames * readCost(0)))
      decode.call(socket, bytes.subarray(at, end))
      at = end
    }
  }

  /** Bytes have come that may be of a message which is not whole for long. */
  #collects(bytes: number): void {
    if (this.#isClosed) return
    if (this.#outside.memory.tryTake(this.#holder, bytes)) this.#unfinishedBytes += bytes
    else this.fail(failure('memory-full'))
  }

  #came(data: Buffer, isBinary: boolean): void {
    this.#giveUnfinished()
    this.#inflow.push(data, isBinary ? 'bytes' : 'text')
  }

  #giveUnfinished(): void {
    this.#outside.memory.give(this.#holder, this.#unfinishedBytes)
    this.#unfinishedBytes = 0
  }

  #send(part: StreamPart): void {
    const { bytes, end, message, more, text } = part
    if (end === true) return this.#sendClose(text)
    if (message === undefined || this.#socket === undefined) return
    const cost = costOf(part)
    const options = { binary: message === 'bytes', fin: more !== true, compress: false }
    this.#socket.send(bytes, options, (error) => {
      if (error === undefined || error === null) this.#sent(bytes.length, cost)
    })
  }

  #sent(bytes: number, cost: number): void {
    this.#bytesOut += bytes
    if (this.#isClosed) return
    this.#outside.memory.give(this.#holder, cost)
    this.#uncredited += cost
    if (this.#uncredited < CREDIT_BYTES) return
    this.#aheadBytes -= this.#uncredited
    this.#post.credit(this.#uncredited)
    this.#uncredited = 0
  }

  #sendClose(text: string | undefined): void {
    const { code, reason } = closingOf(text)
    try {
      if (code === undefined) this.#socket?.close()
      else this.#socket?.close(code, reason)
    } catch {
      this.#socket?.close()
    }
  }

  /** The connection is closed. @param code of the peer's close frame; 1006: there was none */
  #ended(code: number, reason: string): void {
    this.#opening.close()
    if (code === 1006 || this.#cause !== undefined) {
      this.#lost = this.#cause ?? failure('no-close-frame')
      // The messages that had come are the function's.
      if (!this.#inflow.hasWaiting) this.#close(this.#lost)
      return
    }
    this.#inflow.end(JSON.stringify({ code: code === NO_STATUS ? NO_STATUS : code, reason }))
  }

  #close(cause: Error | undefined): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#opening.close()
    this.#inflow.close()
    this.#giveUnfinished()
    this.#outside.memory.give(this.#holder, this.#aheadBytes - this.#uncredited)
    this.#early = []
    const isWell = cause === undefined || this.#isStopped
    const end: SocketEnd = isWell ? { ok: true } : describeSocketEnd(cause, this.#url.host, this.#outside.limits)
    this.#post.closed(end, { bytesOut: this.#bytesOut, bytesIn: this.#inflow.bytesIn })
  }
}

function costOf({ bytes, message, more }: StreamPart): number {
  return bytes.length + (message !== undefined && more !== true ? STREAM_MESSAGE_BYTES : 0)
}

/** What a function wants to say in its close frame. A host may say anything. */
function closingOf(text = ''): { code?: number; reason?: string } {
  try {
    const { code, reason } = JSON.parse(text) as { code?: unknown; reason?: unknown }
    if (typeof code !== 'number' || code === NO_STATUS) return {}
    return { code, ...(typeof reason === 'string' && { reason }) }
  } catch {
    return {}
  }
}

/** A name that comes more than once has all its values in one. */
function joined(headers: WebSocketTarget['headers']): Map<string, string> {
  const all = new Map<string, string>()
  for (const [name, value] of headers) all.set(name, all.has(name) ? `${all.get(name)}, ${value}` : value)
  return all
}
