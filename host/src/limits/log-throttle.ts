export interface LogLimits {
  readonly lines: number
  readonly bytes: number
  /** Length of a window, in ms. */
  readonly windowMs: number
}

export const LOG_LIMITS: LogLimits = { lines: 1000, bytes: 1024 * 1024, windowMs: 10_000 }

/**
 * What of a function's log may pass: so many lines and bytes in a window, which begins with the first line after the one before
 * it.
 */
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

  /** A line about those that were dropped since the last report; undefined if there were none. */
  report(): string | undefined {
    const dropped = this.#dropped
    if (dropped === 0) return undefined
    this.#dropped = 0
    const { lines, bytes, windowMs } = this.#limits
    const what = dropped === 1 ? '1 line was' : `${dropped} lines were`
    return `… ${what} dropped: the limit is ${lines} lines or ${bytes / 1024 ** 2} MiB in ${windowMs / 1000} s`
  }
}

/**
 * Lets the log of one revision pass within its budget, and reports in one line, when the window ends, how many lines were
 * dropped.
 */
export class LogThrottle {
  readonly #budget = new LogBudget()
  readonly #report: (text: string) => void
  #reportTimer: NodeJS.Timeout | undefined

  constructor(report: (text: string) => void) {
    this.#report = report
  }

  /** Whether a line may pass. */
  take(text: string): boolean {
    const nowMs = performance.now()
    const passes = this.#budget.take(Buffer.byteLength(text), nowMs)
    if (!passes) this.#reportTimer ??= setTimeout(() => this.close(), this.#budget.remainingMs(nowMs))
    return passes
  }

  /** Reports what was dropped, now. */
  close(): void {
    clearTimeout(this.#reportTimer)
    this.#reportTimer = undefined
    const report = this.#budget.report()
    if (report !== undefined) this.#report(report)
  }
}

/** The log throttles by revision: a new isolate has no new budget. */
export class LogThrottles {
  readonly #report: (revision: string, text: string) => void
  readonly #throttles = new Map<string, LogThrottle>()

  constructor(report: (revision: string, text: string) => void) {
    this.#report = report
  }

  of(revision: string): LogThrottle {
    let throttle = this.#throttles.get(revision)
    if (throttle === undefined) {
      throttle = new LogThrottle((text) => this.#report(revision, text))
      this.#throttles.set(revision, throttle)
    }
    return throttle
  }

  delete(revision: string): void {
    this.#throttles.delete(revision)
  }
}
