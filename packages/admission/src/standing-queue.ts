export interface StandingQueuePolicy {
  /** Wait that is still good, in ms. */
  readonly targetMs: number
  /** How long waits may be longer than that before the queue stands, in ms. */
  readonly intervalMs: number
}

/**
 * Tells a queue that stands from one that takes up a burst. A queue stands once its calls have waited longer than the target for a whole interval,
 * as in CoDel (RFC 8289, section 4): that it is never empty says little, for callers who wait for one answer before they ask again
 * fill it just as well. A client that leaves has waited too long, whatever the target. Once the queue stands, calls that wait longer than the target are
 * refused, which keeps waits near it; so it has come to an end only when none was refused and none left for an interval, or it is empty for as long.
 */
export class StandingQueue {
  readonly #policy: StandingQueuePolicy
  /** Since when waits are too long. */
  #lateSinceMs: number | undefined
  /** When one was last seen to be. */
  #lateAtMs = Number.NEGATIVE_INFINITY
  #wasLost = false

  constructor(policy: StandingQueuePolicy) {
    this.#policy = policy
  }

  /** Looks at the queue; to be called again and again while it is not empty. @param oldestAtMs when the longest waiting call came; undefined: none waits */
  look(nowMs: number, oldestAtMs: number | undefined): void {
    const { targetMs, intervalMs } = this.#policy
    if (oldestAtMs !== undefined && nowMs - oldestAtMs > targetMs) this.#late(nowMs)
    if (this.#lateSinceMs === undefined) return
    // Losses come one by one, so between them there is a time in which nothing seems late.
    const patienceMs = this.#wasLost || this.lateMs(nowMs) >= intervalMs ? intervalMs : 0
    if (nowMs - this.#lateAtMs <= patienceMs) return
    this.#lateSinceMs = undefined
    this.#wasLost = false
  }

  /** A call was refused because it had waited too long, or its client left. */
  lost(nowMs: number): void {
    this.#wasLost = true
    this.#late(nowMs)
  }

  /** For how long waits have been too long, in ms; 0 if they are not. The queue stands from one interval on. */
  lateMs(nowMs: number): number {
    return this.#lateSinceMs === undefined ? 0 : nowMs - this.#lateSinceMs
  }

  #late(nowMs: number): void {
    this.#lateSinceMs ??= nowMs
    this.#lateAtMs = nowMs
  }
}
