import type { Socket } from 'node:net'
import { monotonicClock, RoundRobin, type Holder } from '@carpool/core'
import { groupOf } from './connections.ts'
import { pauseReading } from './stop-reading.ts'

/** Requests that one turn of the event loop reads before reading stops: about a millisecond's worth. */
const MAX_REQUESTS = 64
/** How long connections may be resumed in one turn, in ms: enough for some twenty. */
const RESUME_MS = 0.05
/** Small chunks that one turn reads from a connection before it takes turns with others: about a millisecond's worth. */
const MAX_CHUNKS = 256

/** What is known of a connection. */
interface Caller {
  /** Of its last request. */
  target: string
  /** The function that it called last; undefined before its first request. */
  holder: Holder | undefined
  isPaused: boolean
  /** Small chunks of bodies that this turn has read from it. */
  chunks: number
}

/** Whose a connection is before its first request: who floods with new ones has those of the same address wait, and no others. */
function newcomer({ remoteAddress = '' }: Socket): Holder {
  return { owner: '', functionName: groupOf(remoteAddress) }
}

/** A connection that is resumed behind this turn has been read by the end of the next. As long as that took is left to others. */
function afterRead(done: () => void): void {
  setImmediate(() => {
    const beganMs = monotonicClock()
    setImmediate(() => setTimeout(done, monotonicClock() - beganMs))
  })
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
  /** Resumes those whose bodies come in many small chunks, one at a time. */
  readonly #costly = new RoundRobin({
    turnMs: RESUME_MS,
    clock: monotonicClock,
    nextTurn: setImmediate,
    afterTask: (done) =>
      afterRead(() => {
        if (!this.#costly.isBusy) this.#resumed = undefined
        done()
      }),
  })
  /** The one that was resumed last of them, until none is left. */
  #resumed: Caller | undefined
  /** Those of which this turn has read small chunks. */
  readonly #chunked: Caller[] = []
  /** Those that this turn has found to be costly, but for the one whose turn it was. */
  #foundCostly = 0

  /** @param holderOf which function a request target calls; all targets that call none share one name */
  constructor(holderOf: (target: string) => Holder) {
    this.#holderOf = holderOf
  }

  /** Whether connections wait to be resumed. */
  get isBusy(): boolean {
    return this.#roundRobin.isBusy
  }

  add(socket: Socket): void {
    const caller: Caller = { target: '', holder: undefined, isPaused: false, chunks: 0 }
    this.#callers.set(socket, caller)
    // Node.js resumes it too: at the end of a request, and when it wants more of a body.
    socket.on('resume', () => {
      if (caller.isPaused) pauseReading(socket)
    })
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

  /**
   * Called for small chunks of a body, or trailers, that were read. One read may hold ten thousand of them, and cannot be left
   * half read. So a connection that brings many waits for its turn before more is read, also while all call one function.
   */
  chunksRead(socket: Socket, count: number): void {
    const caller = this.#callers.get(socket)
    if (caller === undefined) return
    if (caller.chunks === 0 && this.#chunked.push(caller) === 1) setImmediate(this.#endTurn)
    const before = caller.chunks
    caller.chunks += count
    if (before >= MAX_CHUNKS || caller.chunks < MAX_CHUNKS || caller.isPaused) return
    if (this.#resumed !== caller && ++this.#foundCostly > 1) {
      // The others may be as costly, which is known only once they are read; most likely those are that are new.
      for (const [one, { holder }] of this.#callers) {
        if (one !== socket) this.pause(one, holder === undefined ? this.#costly : this.#roundRobin)
      }
    }
    this.#pause(socket, caller, this.#costly)
  }

  /** Stops reading a connection until the round robin resumes it. */
  pause(socket: Socket, roundRobin = this.#roundRobin): void {
    const caller = this.#callers.get(socket)
    if (caller !== undefined && !caller.isPaused) this.#pause(socket, caller, roundRobin)
  }

  #pause(socket: Socket, caller: Caller, roundRobin: RoundRobin): void {
    if (socket.destroyed) return
    caller.isPaused = true
    pauseReading(socket)
    const resume = (): void => {
      caller.isPaused = false
      if (roundRobin === this.#costly) this.#resumed = caller
      if (!socket.destroyed) socket.resume()
    }
    // Not in this turn, which would read it before it ends.
    roundRobin.enter(caller.holder ?? newcomer(socket), () => setImmediate(resume))
  }

  readonly #endTurn = (): void => {
    this.#foundCostly = 0
    for (const caller of this.#chunked.splice(0)) caller.chunks = 0
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
