/** Background work may go on using this much of a core. */
const CORE_SHARE = 0.1
/** Garbage that is collected now is mostly of this much CPU time before, in ns. */
const LATEST_NS = 100_000_000

/**
 * What the background work of a guest may use: as much as one invocation at once, and a tenth of a core in the long run. Each
 * entry of it has a limit of its own, but timers that start each other would take a core for ever.
 */
export class BackgroundBudget {
  /** CPU time used, less what has been earned since, in ms. */
  #owedMs = 0
  #takenNs = 0
  #atMs = 0
  /** CPU time of the latest entries, and what of it was background work, in ns; and how much there was of both at that time. */
  #latestNs = 0
  #latestOfBackgroundNs = 0
  #allNs = 0
  #backgroundNs = 0
  /** Its part of what V8 did on its own. */
  #betweenNs = 0

  /**
   * V8 did something on its own between entries, as collecting garbage. Background work pays for its part of the latest entries.
   * @param allNs CPU time of all entries so far
   * @param backgroundNs the same of background work
   */
  between(betweenNs: number, allNs: number, backgroundNs: number): void {
    this.#latestNs += allNs - this.#allNs
    this.#latestOfBackgroundNs += backgroundNs - this.#backgroundNs
    this.#allNs = allNs
    this.#backgroundNs = backgroundNs
    if (this.#latestNs <= 0) return
    this.#betweenNs += betweenNs * Math.min(1, this.#latestOfBackgroundNs / this.#latestNs)
    const kept = Math.min(1, LATEST_NS / this.#latestNs)
    this.#latestNs *= kept
    this.#latestOfBackgroundNs *= kept
  }

  /**
   * Takes what was used since the last time.
   * @param backgroundNs CPU time of the entries of background work so far
   * @returns false if it is used up
   */
  take(backgroundNs: number, limitMs: number, nowMs: number): boolean {
    const usedNs = backgroundNs + this.#betweenNs
    this.#owedMs = Math.max(0, this.#owedMs - (nowMs - this.#atMs) * CORE_SHARE) + (usedNs - this.#takenNs) / 1e6
    this.#takenNs = usedNs
    this.#atMs = nowMs
    return this.#owedMs <= limitMs
  }
}
