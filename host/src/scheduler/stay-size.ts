/** CPU time that the entries of one stay may take together, in ns. */
const TARGET_NS = 1_000_000
/** More entries than this gain nothing: a stay of 16 costs as much per entry as one of 64. */
const MAX_ENTRIES = 64
/** Weight of the newest stay in the average. */
const SMOOTHING = 0.2

/**
 * How many entries may run in one stay in an isolate. Each stay costs about 12 µs besides its entries (64 calls of 4 µs one by one
 * take 4 times the CPU that they take together), but answers wait for the end of their stay, and an isolate that has to be ended takes
 * all of its stay with it. So: entries that take long run alone, and short ones share a stay of about a millisecond.
 *
 * It begins with one entry, doubles while stays stay short, and falls at once when one does not.
 */
export class StaySize {
  #max = 1
  #entryNs = 0

  /** Most entries in the next stay; 1 or more. */
  get max(): number {
    return this.#max
  }

  /** A stay has ended. */
  took(cpuNs: number, entries: number): void {
    const entryNs = cpuNs / entries
    this.#entryNs = this.#entryNs === 0 ? entryNs : this.#entryNs + SMOOTHING * (entryNs - this.#entryNs)
    // One long entry among short ones hardly moves an average, and the next of its kind must run alone.
    if (cpuNs > 2 * TARGET_NS) this.#max = 1
    else if (entries === this.#max) this.#max = Math.min(this.#max * 2, MAX_ENTRIES)
    this.#max = Math.max(1, Math.min(this.#max, Math.floor(TARGET_NS / Math.max(this.#entryNs, 1))))
  }
}
