/** Less than this is not worth a pause, in ms. */
const WORTH_MS = 5
/** Longest pause, in ms. */
const PAUSE_MAX_MS = 1000

/**
 * Whether guests keep the event loop from turning. isolated-vm hands over calls until none waits; one guest that floods the host runs out of
 * them each time it drains, but several can hand the host from one to the other for ever. Each then has to pause for as long as the loop
 * has stood, which grows until all of them pause together.
 */
export class LoopWatch {
  #firstDrainAtMs: number | undefined

  /** For how long the loop has not turned, in ms; 0 if that is next to nothing. */
  heldMs(nowMs: number = performance.now()): number {
    if (this.#firstDrainAtMs === undefined) {
      this.#firstDrainAtMs = nowMs
      setImmediate(() => (this.#firstDrainAtMs = undefined))
      return 0
    }
    const heldMs = nowMs - this.#firstDrainAtMs
    return heldMs < WORTH_MS ? 0 : Math.min(heldMs, PAUSE_MAX_MS)
  }
}
