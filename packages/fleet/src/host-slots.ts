import { hasRoom } from '@carpool/admission'

/** The right to have an invocation run in a host. Given back exactly once; giving it back again is harmless. */
export interface SlotLease {
  release(): void
}

/**
 * Counts what runs in one host, in all and of each function. An invocation gives its slot back when it is answered, or when it waits for a timer
 * or a fetch: what waits takes none of the host's CPU.
 */
export class HostSlots {
  readonly #onRelease: () => void
  readonly #runningOf = new Map<string, number>()
  #leased = 0
  /** Invocations that have given their slots back and want to go on, as last told. */
  resumed = 0
  limit: number

  constructor(limit: number, onRelease: () => void) {
    this.limit = limit
    this.#onRelease = onRelease
  }

  get running(): number {
    return this.#leased + this.resumed
  }

  get isFull(): boolean {
    return this.running >= this.limit
  }

  runningOf(functionName: string): number {
    return this.#runningOf.get(functionName) ?? 0
  }

  /** @param laneLimit most invocations of the function that may run here */
  hasRoom(functionName: string, laneLimit: number): boolean {
    const ofFunction = this.runningOf(functionName)
    if (ofFunction >= laneLimit) return false
    const functions = this.#runningOf.size + (ofFunction === 0 ? 1 : 0)
    return hasRoom({ running: this.running, limit: this.limit, ofFunction, functions })
  }

  take(functionName: string): SlotLease {
    this.#leased++
    this.#runningOf.set(functionName, this.runningOf(functionName) + 1)
    let isReleased = false
    return {
      release: () => {
        if (isReleased) return
        isReleased = true
        this.#leased--
        const left = this.runningOf(functionName) - 1
        if (left === 0) this.#runningOf.delete(functionName)
        else this.#runningOf.set(functionName, left)
        this.#onRelease()
      },
    }
  }
}
