import { HttpConnection } from './http-connection.ts'

/**
 * At once, connections are opened in groups of so many: more than a server's backlog of 511 would be dropped and tried again a
 * second later.
 */
const OPENED_TOGETHER = 200

/**
 * Connections for calls that come at any time: idle ones are used again, at most so many are open, and who comes then waits in
 * line.
 */
export class ConnectionPool {
  readonly #origin: URL
  readonly #limit: number
  /** The one used last is used next, so that no more are busy than needed. */
  readonly #idle: HttpConnection[] = []
  readonly #waiting: Array<() => void> = []
  #count = 0
  #opened = 0

  constructor(origin: URL, limit: number) {
    this.#origin = origin
    this.#limit = limit
  }

  /** Connections opened so far. */
  get opened(): number {
    return this.#opened
  }

  /** Opens connections ahead of the calls. @throws the system's error if one cannot be opened */
  async fill(count: number): Promise<void> {
    for (let left = Math.min(count, this.#limit); left > 0; left -= OPENED_TOGETHER) {
      const group = Array.from({ length: Math.min(left, OPENED_TOGETHER) }, () => this.#open())
      for (const connection of await Promise.all(group)) this.release(connection)
    }
  }

  /** @throws the system's error if a connection cannot be opened */
  async acquire(): Promise<HttpConnection> {
    for (;;) {
      const idle = this.#takeIdle()
      if (idle !== undefined) return idle
      if (this.#count < this.#limit) return this.#open()
      const turn = Promise.withResolvers<void>()
      this.#waiting.push(turn.resolve)
      await turn.promise
    }
  }

  /** Takes a connection back, also one that is closed. */
  release(connection: HttpConnection): void {
    if (connection.isOpen) this.#idle.push(connection)
    this.#waiting.shift()?.()
  }

  closeAll(): void {
    for (const connection of this.#idle) connection.close()
  }

  #takeIdle(): HttpConnection | undefined {
    for (;;) {
      const connection = this.#idle.pop()
      if (connection === undefined || connection.isOpen) return connection
    }
  }

  async #open(): Promise<HttpConnection> {
    this.#count++
    this.#opened++
    try {
      const connection = await HttpConnection.open(this.#origin)
      connection.onClose = () => this.#forget()
      return connection
    } catch (error) {
      this.#forget()
      throw error
    }
  }

  #forget(): void {
    this.#count--
    this.#waiting.shift()?.()
  }
}
