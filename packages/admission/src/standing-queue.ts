export interface StandingQueuePolicy {
  /** Wait that is still good, in ms. */
  readonly targetMs: number
  /** How long waits may be longer than that before the queue stands, in ms. */
  readonly intervalMs: number
}

/**
 * Tells a queue that stands from one that takes up a burst. A queue stands once its calls have waited longer than the target for a whole interval,
 * as in CoDel (RFC 8289, section 4): that it is never empty says little, for callers who wait for one answer before they ask again
 * fill it just as well. Then calls that wait longer than the target are refused, which keeps waits near it; so a standing queue has come
 * to an end only when it is empty, or none was refused for an interval.
 */
export class StandingQueue {
  readonly #policy: StandingQueuePolicy
  #lateSinceMs: number | undefined
  #refusedAtMs = 0

  constructor(policy: StandingQueuePolicy) {
    this.#policy = policy
  }

  /** Looks at the queue; to be called again and again while it is not empty. @param oldestAtMs when the longest waiting call came; undefined: none waits */
  look(nowMs: number, oldestAtMs: number | undefined): void {
    const { targetMs, intervalMs } = this.#policy
    if (oldestAtMs === undefined) this.#lateSinceMs = undefined
    else if (this.#lateSinceMs === undefined || this.lateMs(nowMs) < intervalMs) {
      if (nowMs - oldestAtMs <= targetMs) this.#lateSinceMs = undefined
      else this.#lateSinceMs ??= this.#refusedAtMs = nowMs
    } else if (nowMs - this.#refusedAtMs >= intervalMs) this.#lateSinceMs = undefined
  }

  /** A call was refused because it had waited too long. */
  refused(nowMs: number): void {
    this.#refusedAtMs = nowMs
  }

  /** For how long waits have been too long, in ms; 0 if they are not. The queue stands from one interval on. */
  lateMs(nowMs: number): number {
    return this.#lateSinceMs === undefined ? 0 : nowMs - this.#lateSinceMs
  }
}
