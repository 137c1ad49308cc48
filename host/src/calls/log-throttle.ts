import { LogBudget } from './log-budget.ts'

/** Lets the log of one revision pass within its budget, and says in one line, when the window ends, how many lines were dropped. */
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
