import type { Socket } from 'node:net'
import { monotonicClock, NOBODY, RoundRobin, type Holder } from '@carpool/core'

/** Requests that one turn of the event loop reads before reading stops: about a millisecond's worth. */
const MAX_REQUESTS = 64
/** How long connections may be resumed in one turn, in ms: enough for some twenty. */
const RESUME_MS = 0.05

/** What is known of a connection. */
interface Caller {
  /** Of its last request. */
  target: string
  /** The function that it called last; undefined before its first request. */
  holder: Holder | undefined
  isPaused: boolean
}

/**
 * Keeps a flood of calls of one function from delaying those of another before they are read. The event loop reads all
 * connections that have something before it does anything else, so a call behind those of ten thousand connections waits until
 * all of them are read. When one turn reads too many, reading stops on every connection, and is resumed in the turns that follow,
 * by round robin between the owners of the functions that the connections called last, and then between their functions. While
 * all call one function, nothing stops: they would delay nobody but each other.
 *
 * The case (`bench:scaling --only flood`, 10,000 clients in a closed loop, at `0f0a57d`, 2026-11-22): calls of another function
 * have a median of 13 ms and a p99 of 41 ms; without this, 62 ms and 151 ms.
 */
export class ReadBackpressure {
  readonly #roundRobin = new RoundRobin({ turnMs: RESUME_MS, clock: monotonicClock, nextTurn: setImmediate })
  readonly #holderOf: (target: string) => Holder
  readonly #callers = new Map<Socket, Caller>()
  /** How many connections called each function last. */
  readonly #callersOf = new Map<string, number>()
  #requests = 0

  /** @param holderOf which function a request target calls; all targets that call none share one name */
  constructor(holderOf: (target: string) => Holder) {
    this.#holderOf = holderOf
  }

  /** Whether connections wait to be resumed. */
  get isBusy(): boolean {
    return this.#roundRobin.isBusy
  }

  add(socket: Socket): void {
    const caller: Caller = { target: '', holder: undefined, isPaused: false }
    this.#callers.set(socket, caller)
    socket.once('close', () => {
      if (caller.holder !== undefined) this.#count(caller.holder.functionName, -1)
      this.#callers.delete(socket)
    })
  }

  /** Called for each request that was read. */
  requestRead(socket: Socket, target: string): void {
    const caller = this.#callers.get(socket)
    if (caller !== undefined && caller.target !== target) this.#setTarget(caller, target)
    if (this.#requests++ === 0) setImmediate(() => (this.#requests = 0))
    if (this.#requests !== MAX_REQUESTS || this.#callers.size <= MAX_REQUESTS || this.#callersOf.size <= 1) return
    for (const one of this.#callers.keys()) this.pause(one)
  }

  /** Stops reading a connection until the round robin resumes it. */
  pause(socket: Socket): void {
    const caller = this.#callers.get(socket)
    if (caller === undefined || caller.isPaused || socket.destroyed) return
    caller.isPaused = true
    socket.pause()
    this.#roundRobin.enter(caller.holder ?? NOBODY, () => {
      caller.isPaused = false
      if (!socket.destroyed) socket.resume()
    })
  }

  #setTarget(caller: Caller, target: string): void {
    caller.target = target
    const holder = this.#holderOf(target)
    if (caller.holder !== undefined) this.#count(caller.holder.functionName, -1)
    this.#count(holder.functionName, 1)
    caller.holder = holder
  }

  #count(functionName: string, change: 1 | -1): void {
    const count = (this.#callersOf.get(functionName) ?? 0) + change
    if (count === 0) this.#callersOf.delete(functionName)
    else this.#callersOf.set(functionName, count)
  }
}
