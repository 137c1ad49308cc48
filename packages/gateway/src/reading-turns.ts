import type { Socket } from 'node:net'
import { monotonicClock } from '@carpool/core'
import { Turnstile } from './turnstile.ts'

/** Requests that one turn of the event loop reads before it stops, and lets connections have turns: about a millisecond's worth. */
const MAX_REQUESTS = 64
/** How long connections may be opened for reading again in one turn, in ms: some twenty. */
const RESUME_MS = 0.05

/** What a connection called last. */
interface Caller {
  target: string
  /** Undefined before its first request. */
  functionName: string | undefined
}

/**
 * Decides when connections are read. The event loop reads all that have something before it looks at anything else, so a call that comes
 * behind those of ten thousand connections waits for all of them to be read. When there are so many in one turn, reading stops on every connection,
 * and begins again on some in each turn: of those that called the same function last, one in turn. Where all call one function, nobody is held up but
 * its own callers, and nothing stops.
 */
export class ReadingTurns {
  readonly #turnstile = new Turnstile({ turnMs: RESUME_MS, clock: monotonicClock, nextTurn: setImmediate })
  readonly #functionOf: (target: string) => string
  readonly #callers = new Map<Socket, Caller>()
  /** How many connections called each function last. */
  readonly #callersOf = new Map<string, number>()
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
    this.#callers.set(socket, { target: '', functionName: undefined })
    socket.once('close', () => {
      const functionName = this.#callers.get(socket)?.functionName
      if (functionName !== undefined) this.#count(functionName, -1)
      this.#callers.delete(socket)
      this.#paused.delete(socket)
    })
  }

  /** A request was read. */
  read(socket: Socket, target: string): void {
    const caller = this.#callers.get(socket)
    if (caller !== undefined && caller.target !== target) this.#calls(caller, target)
    if (this.#requests++ === 0) setImmediate(() => (this.#requests = 0))
    if (this.#requests !== MAX_REQUESTS || this.#callers.size <= MAX_REQUESTS || this.#callersOf.size <= 1) return
    for (const one of this.#callers.keys()) this.pause(one)
  }

  /** Reads no more of a connection until it is its turn. */
  pause(socket: Socket): void {
    if (socket.destroyed || this.#paused.has(socket)) return
    this.#paused.add(socket)
    socket.pause()
    this.#turnstile.enter(this.#callers.get(socket)?.functionName ?? '', () => {
      if (this.#paused.delete(socket)) socket.resume()
    })
  }

  #calls(caller: Caller, target: string): void {
    caller.target = target
    const functionName = this.#functionOf(target)
    if (functionName === caller.functionName) return
    if (caller.functionName !== undefined) this.#count(caller.functionName, -1)
    this.#count(functionName, 1)
    caller.functionName = functionName
  }

  #count(functionName: string, change: 1 | -1): void {
    const count = (this.#callersOf.get(functionName) ?? 0) + change
    if (count === 0) this.#callersOf.delete(functionName)
    else this.#callersOf.set(functionName, count)
  }
}
