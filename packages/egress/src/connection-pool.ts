import type { Socket } from 'node:net'
import type { Holder } from '@carpool/core'
import { Client, type Dispatcher } from 'undici'
import type { Connect, ConnectTarget } from './guarded-connector.ts'

/** How long a connection may wait for another fetch, whatever the server would allow. */
const IDLE_MS = 4_000

interface ConnectionOptions {
  readonly connect: Connect
  readonly maxHeaderBytes: number
}

/**
 * One connection to an origin, with one exchange at a time. undici speaks HTTP/1.1 on it. The socket is known, so every byte on
 * it is counted for one fetch.
 */
export class Connection {
  readonly #client: Client
  #socket: Socket | undefined
  /** What the socket had read when the exchange began. */
  #bytesBefore = 0
  #isBroken = false
  #onRead: (() => void) | undefined

  /** @param onGone called when it has no socket any more, or never got one; it may be called again */
  constructor({ origin, ...holder }: ConnectionKey, { connect, maxHeaderBytes }: ConnectionOptions, onGone: () => void) {
    this.#client = new Client(origin, {
      connect: (target, connected) => this.#connect(connect, { ...target, holder }, connected as Parameters<Connect>[1]),
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

  /** Whether it ended with an error: a response that is delimited by the end of the connection is not whole then. */
  get isBroken(): boolean {
    return this.#isBroken
  }

  /** Bytes that the peer has sent since the exchange began; the last ones may not be parsed yet. */
  get bytesRead(): number {
    return (this.#socket?.bytesRead ?? 0) - this.#bytesBefore
  }

  /** @param onRead called when bytes have come, before they are parsed */
  begin(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler, onRead: () => void): void {
    this.#bytesBefore = this.#socket?.bytesRead ?? 0
    this.#onRead = onRead
    this.#client.dispatch(options, handler)
  }

  end(): void {
    this.#onRead = undefined
  }

  /** Ends it at once, also while it connects. */
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

export interface ConnectionPoolOptions extends ConnectionOptions {
  /** Limit of connections, used or idle. The caller must not acquire more at once. */
  readonly maxConnections: number
  /** Connections besides those of the pool that count towards the limit. Default: none. */
  readonly others?: () => number
}

/** Functions share no connection: what one has sent can do nothing to the responses of another. */
export interface ConnectionKey extends Holder {
  readonly origin: string
}

/** Keeps idle connections for the next fetch of the same function to the same origin, as long as there is room. */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions
  readonly #all = new Set<Connection>()
  /** By key; of all of them, the one that has been idle longest comes first in `#idleSince`. */
  readonly #idle = new Map<string, Set<Connection>>()
  readonly #idleSince = new Map<Connection, string>()

  constructor(options: ConnectionPoolOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#all.size
  }

  /** Gives an idle connection, or a new one that connects at its first exchange. */
  acquire({ owner, functionName, origin }: ConnectionKey): Connection {
    const key = `${functionName}\n${origin}`
    for (const idle of this.#idle.get(key) ?? []) {
      this.#unlist(idle)
      if (idle.isUsable) return idle
      this.discard(idle)
    }
    this.makeRoom()
    const connection: Connection = new Connection({ owner, functionName, origin }, this.#options, () => {
      // One that is in use is released or discarded by its user.
      if (this.#idleSince.has(connection)) this.discard(connection)
    })
    this.#all.add(connection)
    return connection
  }

  /** Ends the connection that has been idle longest, if there is no room for one more. */
  makeRoom(): void {
    const { maxConnections, others } = this.#options
    if (this.#all.size + (others?.() ?? 0) < maxConnections) return
    const [oldest] = this.#idleSince.keys()
    if (oldest !== undefined) this.discard(oldest)
  }

  /**
   * The exchange on it has ended well.
   * @param released called when the next fetch may have it
   */
  release(connection: Connection, { functionName, origin }: ConnectionKey, released: () => void): void {
    connection.end()
    // undici knows at the end of this turn whether the server keeps it open.
    setImmediate(() => {
      queueMicrotask(released)
      if (!connection.isUsable || !this.#all.has(connection)) return this.discard(connection)
      const key = `${functionName}\n${origin}`
      this.#idleSince.set(connection, key)
      const idle = this.#idle.get(key)
      if (idle === undefined) this.#idle.set(key, new Set([connection]))
      else idle.add(connection)
    })
  }

  /** Ends a connection in any state. */
  discard(connection: Connection): void {
    this.#unlist(connection)
    this.#all.delete(connection)
    connection.destroy()
  }

  #unlist(connection: Connection): void {
    const key = this.#idleSince.get(connection)
    if (key === undefined) return
    this.#idleSince.delete(connection)
    const idle = this.#idle.get(key)
    idle?.delete(connection)
    if (idle?.size === 0) this.#idle.delete(key)
  }
}
