import { Connection, type ConnectionOptions } from './connection.ts'

export interface ConnectionPoolOptions extends ConnectionOptions {
  /** Connections that there may be, used or idle. Whoever acquires must not have more at once. */
  readonly maxConnections: number
}

/** Whose connection it is, and where to. Functions share none: what one has sent can do nothing to the responses of another. */
export interface ConnectionKey {
  readonly functionName: string
  readonly origin: string
}

/** Keeps connections for the next fetch of the same function to the same origin, for as long as there is room. */
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
  acquire({ functionName, origin }: ConnectionKey): Connection {
    const key = `${functionName}\n${origin}`
    for (const idle of this.#idle.get(key) ?? []) {
      this.#unlist(idle)
      if (idle.isUsable) return idle
      this.discard(idle)
    }
    if (this.#all.size >= this.#options.maxConnections) {
      const [oldest] = this.#idleSince.keys()
      if (oldest !== undefined) this.discard(oldest)
    }
    const connection: Connection = new Connection(origin, this.#options, () => {
      // One that is used is given back or discarded by its user.
      if (this.#idleSince.has(connection)) this.discard(connection)
    })
    this.#all.add(connection)
    return connection
  }

  /**
   * The exchange on it has ended well.
   * @param released called when the next fetch may have it
   */
  release(connection: Connection, { functionName, origin }: ConnectionKey, released: () => void): void {
    connection.end()
    // Whether the server keeps it open shows when undici is done with this turn.
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

  /** Ends a connection, whatever it is at. */
  discard(connection: Connection): void {
    this.#unlist(connection)
    this.#all.delete(connection)
    connection.destroy()
  }

  close(): void {
    for (const connection of this.#all) this.discard(connection)
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
