export interface LogLimits {
  readonly lines: number
  readonly bytes: number
  /** Length of a window, in ms. */
  readonly windowMs: number
}

export const LOG_LIMITS: LogLimits = { lines: 1000, bytes: 1024 * 1024, windowMs: 10_000 }

/** What of a function's log may pass: so many lines and bytes in a window, which begins with the first line after the one before it. */
export class LogBudget {
  readonly #limits: LogLimits
  #windowStartMs = Number.NEGATIVE_INFINITY
  #lines = 0
  #bytes = 0
  #isSpent = false
  #dropped = 0

  constructor(limits: LogLimits = LOG_LIMITS) {
    this.#limits = limits
  }

  /** Whether a line may pass. The first that may not ends the window's budget, so that what passes has no gaps but at the end. */
  take(bytes: number, nowMs: number): boolean {
    const { lines: maxLines, bytes: maxBytes, windowMs } = this.#limits
    if (nowMs - this.#windowStartMs >= windowMs) {
      this.#windowStartMs = nowMs
      this.#lines = 0
      this.#bytes = 0
      this.#isSpent = false
    }
    this.#isSpent ||= this.#lines + 1 > maxLines || this.#bytes + bytes > maxBytes
    if (this.#isSpent) {
      this.#dropped++
      return false
    }
    this.#lines++
    this.#bytes += bytes
    return true
  }

  /** How long until the window ends, in ms. */
  remainingMs(nowMs: number): number {
    return Math.max(0, this.#windowStartMs + this.#limits.windowMs - nowMs)
  }

  /** What to tell of the lines dropped since the last report; undefined if there were none. */
  report(): string | undefined {
    const dropped = this.#dropped
    if (dropped === 0) return undefined
    this.#dropped = 0
    const { lines, bytes, windowMs } = this.#limits
    const what = dropped === 1 ? '1 line was' : `${dropped} lines were`
    return `… ${what} dropped: the limit is ${lines} lines or ${bytes / 1024 ** 2} MiB in ${windowMs / 1000} s`
  }
}
