import type { Clock } from '@carpool/core'

export interface FailedAttemptsOptions {
  readonly clock: Clock
  /** How many failures of one source are taken at once. Default: 20. */
  readonly burst?: number
  /** How long it takes until one of them is forgotten, in ms. Default: 3000. */
  readonly forgetMs?: number
  /** Sources that are remembered; the one that failed longest ago is forgotten first. Default: 1024. */
  readonly maxSources?: number
}

interface Source {
  /** Failures that are not forgotten yet, at the time of the last one. */
  readonly failures: number
  readonly atMs: number
}

/** Counts failures of each source, such as an address, as a leaky bucket. */
export class FailedAttempts {
  readonly #clock: Clock
  readonly #burst: number
  readonly #forgetMs: number
  readonly #maxSources: number
  /** The one that failed last is at the end. */
  readonly #sources = new Map<string, Source>()

  constructor({ clock, burst = 20, forgetMs = 3_000, maxSources = 1_024 }: FailedAttemptsOptions) {
    this.#clock = clock
    this.#burst = burst
    this.#forgetMs = forgetMs
    this.#maxSources = maxSources
  }

  /**
   * Counts a failure.
   * @returns `counted`; `last`: the next one at once is too many; `too-many`: it was, and is not counted
   */
  add(source: string): 'counted' | 'last' | 'too-many' {
    const nowMs = this.#clock()
    const failures = this.#failuresOf(source, nowMs) + 1
    if (failures > this.#burst) return 'too-many'
    this.#sources.delete(source)
    this.#sources.set(source, { failures, atMs: nowMs })
    const [oldest] = this.#sources.keys()
    if (this.#sources.size > this.#maxSources && oldest !== undefined) this.#sources.delete(oldest)
    return failures + 1 > this.#burst ? 'last' : 'counted'
  }

  /** How long until a failure of the source is taken again, in ms; 0 if it would be now. */
  waitMs(source: string): number {
    const excess = this.#failuresOf(source, this.#clock()) + 1 - this.#burst
    return Math.max(0, Math.ceil(excess * this.#forgetMs))
  }

  #failuresOf(source: string, nowMs: number): number {
    const { failures, atMs } = this.#sources.get(source) ?? { failures: 0, atMs: nowMs }
    return Math.max(0, failures - (nowMs - atMs) / this.#forgetMs)
  }
}
