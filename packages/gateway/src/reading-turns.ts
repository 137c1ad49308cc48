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
  readonly #functionOf: (target: string) => string
  /** Connections, and the target of the last request of each. */
  readonly #targets = new Map<Socket, string>()
  readonly #paused = new Set<Socket>()
  #requests = 0

  /** @param functionOf which function a request target calls; what calls none has turns as if it were one function */
  constructor(functionOf: (target: string) => string) {
    this.#functionOf = functionOf
  }

  /** Whether connections wait for their turn. */
  get isBusy(): boolean {
    return this.#turnstile.isBusy
  }

  opened(socket: Socket): void {
    this.#targets.set(socket, '')
    socket.once('close', () => {
      this.#targets.delete(socket)
      this.#paused.delete(socket)
    })
  }

  /** A request was read. */
  read(socket: Socket, target: string): void {
    if (this.#targets.has(socket)) this.#targets.set(socket, target)
    if (this.#requests++ === 0) setImmediate(() => (this.#requests = 0))
    if (this.#requests !== MAX_REQUESTS || this.#targets.size <= MAX_REQUESTS) return
    for (const one of this.#targets.keys()) this.pause(one)
  }

  /** Reads no more of a connection until it is its turn. */
  pause(socket: Socket): void {
    if (socket.destroyed || this.#paused.has(socket)) return
    this.#paused.add(socket)
    socket.pause()
    this.#turnstile.enter(this.#functionOf(this.#targets.get(socket) ?? ''), () => {
      if (this.#paused.delete(socket)) socket.resume()
    })
  }
}
