import type { Clock } from '@carpool/core'

/** Log lines that were lost since the last report. */
export interface LogProblem {
  readonly droppedLines: number
  readonly detail: string
  /** What the file system said about the last of them. */
  readonly cause?: unknown
}

const REPORT_INTERVAL_MS = 60_000

/** Counts lost lines, and tells of them at most once per minute. */
export class DropReport {
  readonly #clock: Clock
  readonly #onProblem: (problem: LogProblem) => void
  #total = 0
  #unreported = 0
  #lastReportMs = Number.NEGATIVE_INFINITY
  #latest: Omit<LogProblem, 'droppedLines'> = { detail: '' }

  constructor(clock: Clock, onProblem: (problem: LogProblem) => void) {
    this.#clock = clock
    this.#onProblem = onProblem
  }

  /** Lines lost since the start. */
  get total(): number {
    return this.#total
  }

  add(lines: number, latest: Omit<LogProblem, 'droppedLines'>): void {
    this.#total += lines
    this.#unreported += lines
    this.#latest = latest
    if (this.#clock() - this.#lastReportMs >= REPORT_INTERVAL_MS) this.flush()
  }

  /** Reports what was not reported yet. */
  flush(): void {
    if (this.#unreported === 0) return
    const problem = { droppedLines: this.#unreported, ...this.#latest }
    this.#unreported = 0
    this.#lastReportMs = this.#clock()
    this.#onProblem(problem)
  }
}
