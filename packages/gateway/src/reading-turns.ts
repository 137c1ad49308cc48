import type { Socket } from 'node:net'
import { monotonicClock } from '@carpool/core'
import { Turnstile } from './turnstile.ts'

/** Requests that one turn of the event loop reads before it stops, and lets connections have turns: about a millisecond's worth. */
const MAX_REQUESTS = 64
/** How long connections may be opened for reading again in one turn, in ms: some twenty. */
const RESUME_MS = 0.05

/**
 * Decides when connections are read. The event loop reads all that have something before it looks at anything else, so a call that comes
 * behind those of ten thousand connections waits for all of them to be read. When there are so many in one turn, reading stops on every connection,
 * and begins again on some in each turn: of those that called the same function last, one in turn.
 */
export class ReadingTurns {
  readonly #turnstile = new Turnstile({ turnMs: RESUME_MS, clock: monotonicClock, nextTurn: setImmediate })
  /** Connections, and which function each called last. */
  readonly #calledBy = new Map<Socket, string>()
  readonly #paused = new Set<Socket>()
  #requests = 0

  /** Whether connections wait for their turn. */
  get isBusy(): boolean {
    return this.#turnstile.isBusy
  }

  opened(socket: Socket): void {
    this.#calledBy.set(socket, '')
    socket.once('close', () => {
      this.#calledBy.delete(socket)
      this.#paused.delete(socket)
    })
  }

  /** A request was read. */
  read(socket: Socket, functionName: string): void {
    if (this.#calledBy.has(socket)) this.#calledBy.set(socket, functionName)
    if (this.#requests++ === 0) setImmediate(() => (this.#requests = 0))
    if (this.#requests !== MAX_REQUESTS || this.#calledBy.size <= MAX_REQUESTS) return
    for (const [one, name] of this.#calledBy) this.pause(one, name)
  }

  /** Reads no more of a connection until it is its turn. */
  pause(socket: Socket, functionName: string): void {
    if (socket.destroyed || this.#paused.has(socket)) return
    this.#paused.add(socket)
    socket.pause()
    this.#turnstile.enter(functionName, () => {
      if (this.#paused.delete(socket)) socket.resume()
    })
  }
}
