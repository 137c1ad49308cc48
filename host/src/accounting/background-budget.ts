/** What nobody waits for may go on using this much of a core. */
const CORE_SHARE = 0.1

/**
 * What a guest may use while nobody waits for it: as much as one invocation at once, and a tenth of a core in the long run. Each entry of such work has a
 * limit of its own, but timers that start each other would take a core for ever.
 */
export class BackgroundBudget {
  /** What it has used and not been forgiven yet, in ms of CPU. */
  #owedMs = 0
  #atMs = 0

  /** Takes from it. @returns false if it is used up */
  take(cpuMs: number, limitMs: number, nowMs: number): boolean {
    this.#owedMs = Math.max(0, this.#owedMs - (nowMs - this.#atMs) * CORE_SHARE) + cpuMs
    this.#atMs = nowMs
    return this.#owedMs <= limitMs
  }
}
