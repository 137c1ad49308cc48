import { hasRoom } from './has-room.ts'
import { laneCapacity, laneLimit } from './lane-limit.ts'
import type { Lease } from '@carpool/core'
import type { Lane } from './lanes.ts'

/** A call that costs hardly more than to send it. */
const SHORTEST: Lane = { functionName: '', costMs: 0.01, wallMs: 1 }

/**
 * Counts what runs in one host, in all and of each function. An invocation gives its slot back when it is answered, or when it waits for a timer
 * or a fetch: what waits takes none of the host's CPU.
 */
export class HostSlots {
  readonly #onRelease: () => void
  readonly #runningOf = new Map<string, number>()
  readonly #inFlightOf = new Map<string, number>()
  readonly #targetMs: number
  #leased = 0
  /** Usual CPU time of what runs, in ms; of calls whose cost was not known, none is counted. */
  #workMs = 0
  #unknown = 0
  /** Invocations that have given their slots back and want to go on, as last told. */
  resumed = 0
  limit: number

  /** @param targetMs p90 run delay that is good */
  constructor({ limit, targetMs }: { readonly limit: number; readonly targetMs: number }, onRelease: () => void) {
    this.limit = limit
    this.#targetMs = targetMs
    this.#onRelease = onRelease
  }

  get running(): number {
    return this.#leased + this.resumed
  }

  /** Whether only a function's own share is left, or less. */
  get isFull(): boolean {
    return !this.#hasRoom(SHORTEST, Number.POSITIVE_INFINITY)
  }

  /** Functions of which something runs. */
  get runningFunctions(): Iterable<string> {
    return this.#runningOf.keys()
  }

  runningOf(functionName: string): number {
    return this.#runningOf.get(functionName) ?? 0
  }

  hasRoom(lane: Lane): boolean {
    const { functionName, costMs, wallMs } = lane
    const ofFunction = this.runningOf(functionName)
    if (ofFunction >= laneLimit(costMs, this.#targetMs)) return false
    if ((this.#inFlightOf.get(functionName) ?? 0) >= laneCapacity(costMs, wallMs)) return false
    return this.#hasRoom(lane, ofFunction)
  }

  take({ functionName, costMs }: Lane): Lease {
    this.#leased++
    if (costMs === undefined) this.#unknown++
    else this.#workMs += costMs
    add(this.#runningOf, functionName, 1)
    add(this.#inFlightOf, functionName, 1)
    return new SlotLease(this, functionName, costMs)
  }

  /** For leases alone: the invocation does not run any more. */
  released(functionName: string, costMs: number | undefined): void {
    this.#leased--
    if (costMs === undefined) this.#unknown--
    // Sums of fractions drift.
    else this.#workMs = this.#leased === this.#unknown ? 0 : this.#workMs - costMs
    add(this.#runningOf, functionName, -1)
  }

  /** For leases alone: the invocation has ended. */
  ended(functionName: string): void {
    add(this.#inFlightOf, functionName, -1)
  }

  /** For leases alone: there is more room than before. */
  hasMoreRoom(): void {
    this.#onRelease()
  }

  #hasRoom({ functionName, costMs }: Lane, ofFunction: number): boolean {
    const isKnown = costMs !== undefined && this.#unknown === 0 && this.resumed === 0
    return hasRoom({
      running: this.running,
      limit: this.limit,
      ofFunction,
      functions: this.#runningOf.size + (this.#runningOf.has(functionName) ? 0 : 1),
      workMs: isKnown ? this.#workMs + costMs : Number.POSITIVE_INFINITY,
      targetMs: this.#targetMs,
    })
  }
}

class SlotLease implements Lease {
  readonly #slots: HostSlots
  readonly #functionName: string
  readonly #costMs: number | undefined
  #isReleased = false
  #isEnded = false

  constructor(slots: HostSlots, functionName: string, costMs: number | undefined) {
    this.#slots = slots
    this.#functionName = functionName
    this.#costMs = costMs
  }

  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#slots.released(this.#functionName, this.#costMs)
    this.#slots.hasMoreRoom()
  }

  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#slots.ended(this.#functionName)
    if (this.#isReleased) this.#slots.hasMoreRoom()
    else this.release()
  }
}

function add(counts: Map<string, number>, functionName: string, change: 1 | -1): void {
  const count = (counts.get(functionName) ?? 0) + change
  if (count === 0) counts.delete(functionName)
  else counts.set(functionName, count)
}
