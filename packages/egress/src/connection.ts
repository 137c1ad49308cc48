import type { Socket } from 'node:net'
import { Client, type Dispatcher } from 'undici'
import type { Connect, ConnectTarget } from './guarded-connector.ts'

/** How long a connection may wait for another fetch, whatever the server would allow. */
const IDLE_MS = 4_000

export interface ConnectionOptions {
  readonly connect: Connect
  readonly maxHeaderBytes: number
}

/**
 * One connection to an origin, with one exchange at a time. undici speaks HTTP/1.1 on it; that there is one socket for each exchange, and that it is
 * known, is what makes every byte on it the doing of one fetch.
 */
export class Connection {
  readonly #client: Client
  #socket: Socket | undefined
  /** What the socket had read when the exchange began. */
  #bytesBefore = 0
  #isBroken = false
  #onRead: (() => void) | undefined

  /** @param onGone called when it has no socket any more, or never got one; it may be called again */
  constructor(origin: string, { connect, maxHeaderBytes }: ConnectionOptions, onGone: () => void) {
    this.#client = new Client(origin, {
      connect: (target, connected) => this.#connect(connect, target, connected as Parameters<Connect>[1]),
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: maxHeaderBytes,
      // The time limits of the fetch cover both.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
    })
    this.#client.on('disconnect', onGone).on('connectionError', onGone)
  }

  /** Whether another exchange can begin on it. */
  get isUsable(): boolean {
    return !this.#client.destroyed && this.#socket !== undefined && !this.#socket.destroyed && !this.#isBroken
  }

  /** Whether the peer broke it off: a response that only the end of the connection ends is not whole then. */
  get isBroken(): boolean {
    return this.#isBroken
  }

  /** Bytes that the peer has sent since the exchange began, of which the last ones may not be looked at yet. */
  get bytesRead(): number {
    return (this.#socket?.bytesRead ?? 0) - this.#bytesBefore
  }

  /** @param onRead called when bytes have come, before they are looked at */
  begin(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler, onRead: () => void): void {
    this.#bytesBefore = this.#socket?.bytesRead ?? 0
    this.#onRead = onRead
    this.#client.dispatch(options, handler)
  }

  end(): void {
    this.#onRead = undefined
  }

  /** Ends it where it is, also while it connects. */
  destroy(): void {
    this.end()
    this.#client.destroy().catch(() => {})
    this.#socket?.destroy()
  }

  #connect(connect: Connect, target: ConnectTarget, connected: Parameters<Connect>[1]): void {
    const socket = connect(target, connected)
    this.#socket = socket
    this.#bytesBefore = 0
    socket?.on('readable', () => this.#onRead?.()).on('error', () => (this.#isBroken = true))
  }
}
