import { hasRoom, laneCapacity, laneLimit } from '@carpool/admission'

/** The right to have an invocation run in a host. Given back exactly once; giving it back again is harmless. */
export interface SlotLease {
  /** The invocation waits: another may run. */
  release(): void
  /** The invocation has ended. Releases what is not released yet. */
  end(): void
}

/** What is asked of a host's room. */
export interface Lane {
  readonly functionName: string
  /** Usual CPU time of a call, in ms; undefined if it is not known. */
  readonly costMs: number | undefined
  readonly wallMs: number
}

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

  take({ functionName, costMs }: Lane): SlotLease {
    this.#leased++
    if (costMs === undefined) this.#unknown++
    else this.#workMs += costMs
    add(this.#runningOf, functionName, 1)
    add(this.#inFlightOf, functionName, 1)
    let [isReleased, isEnded] = [false, false]
    const release = (): void => {
      if (isReleased) return
      isReleased = true
      this.#leased--
      if (costMs === undefined) this.#unknown--
      // Sums of fractions drift.
      else this.#workMs = this.#leased === this.#unknown ? 0 : this.#workMs - costMs
      add(this.#runningOf, functionName, -1)
      this.#onRelease()
    }
    const end = (): void => {
      if (isEnded) return
      isEnded = true
      add(this.#inFlightOf, functionName, -1)
      if (isReleased) this.#onRelease()
      else release()
    }
    return { release, end }
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

function add(counts: Map<string, number>, functionName: string, change: 1 | -1): void {
  const count = (counts.get(functionName) ?? 0) + change
  if (count === 0) counts.delete(functionName)
  else counts.set(functionName, count)
}
