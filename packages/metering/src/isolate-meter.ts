/** What the meter needs of a clock reading of an isolate. */
export interface CpuReading {
  readonly ns: number
  /** False while the isolate is entered. */
  readonly isExact: boolean
}

/**
 * Turns the readings of one isolate's CPU clock into what each stay used. Whatever was given out before an exact reading, as an estimate, is
 * taken off what comes after: over time the sum is that of the clock, and no stay is ever negative.
 */
export class IsolateMeter {
  #settledNs = 0
  /** Given out beyond the last exact reading. */
  #aheadNs = 0

  /** CPU time since the last exact reading that nothing was given out for, in ns. @param reading must be exact */
  settle({ ns }: CpuReading): number {
    const sinceNs = Math.max(0, ns - this.#settledNs)
    this.#settledNs = Math.max(ns, this.#settledNs)
    const usedNs = Math.max(0, sinceNs - this.#aheadNs)
    this.#aheadNs = Math.max(0, this.#aheadNs - sinceNs)
    return usedNs
  }

  /** Something was charged before its time, for somebody waits for it. */
  advance(estimateNs: number): void {
    this.#aheadNs += estimateNs
  }
}
