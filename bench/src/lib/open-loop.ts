/**
 * Starts work at a fixed rate whether or not earlier work has ended, as callers who know nothing of each other do. What is due
 * while the process was busy is started late but never left out.
 */
export class OpenLoop {
  readonly #intervalMs: number
  readonly #start: (plannedMs: number) => Promise<void>
  readonly #underWay = new Set<Promise<void>>()
  #nextMs = 0
  #timer: NodeJS.Timeout | undefined
  #latestStartMs = 0

  /** @param start begins one piece of work, which must not reject; `plannedMs` is when it was due on the monotonic clock */
  constructor(ratePerSecond: number, start: (plannedMs: number) => Promise<void>) {
    this.#intervalMs = 1000 / ratePerSecond
    this.#start = start
  }

  /** How late the latest piece of work was started, in ms: a large value says that this process was the bottleneck. */
  get latestStartMs(): number {
    return this.#latestStartMs
  }

  start(): void {
    this.#nextMs = performance.now()
    this.#tick()
  }

  /** Starts nothing more and waits for what is under way. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    await Promise.all(this.#underWay)
  }

  #tick(): void {
    for (let now = performance.now(); this.#nextMs <= now; this.#nextMs += this.#intervalMs) {
      this.#latestStartMs = Math.max(this.#latestStartMs, now - this.#nextMs)
      const work = this.#start(this.#nextMs).finally(() => this.#underWay.delete(work))
      this.#underWay.add(work)
    }
    this.#timer = setTimeout(() => this.#tick(), Math.max(0, this.#nextMs - performance.now()))
  }
}
