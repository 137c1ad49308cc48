import type { BackgroundUsage, InvocationQuery, InvocationRecord, UsageQuery, UsageRow } from '@carpool/core'

/** What an operator should know. */
export interface LedgerProblem {
  readonly message: string
  /** What the database or the thread said. */
  readonly cause?: unknown
  /** Records that are not in the ledger and will not be: the last place that has them is here. */
  readonly lost?: ReadonlyArray<InvocationRecord | BackgroundUsage>
}

export interface LedgerOptions {
  /** Age at which the row of an invocation is deleted, in days; at least 1. The hourly totals stay. */
  readonly retentionDays: number
  /** Must not throw. */
  readonly onProblem: (problem: LedgerProblem) => void
  /**
   * How many calls are under way whose record is not given to `write` yet. When records come quickly they are held back, for a millisecond
   * at most, to be written together; not when this says 0, for then only those who wait could make more. It has to be cheap. Default: unknown.
   */
  readonly underWay?: () => number
  /** The time of day in ms of the epoch, by which old rows are deleted. Default: `Date.now`. */
  readonly now?: () => number
}

/** One row for each invocation, with hourly totals, in `ledger.sqlite`. */
export interface Ledger {
  /**
   * Resolves once the record is committed, which a killed process does not lose. After a power cut the last moments may be missing, but
   * the database is sound. Figures that are negative or no numbers are kept as 0.
   *
   * @param instanceUs see `UsageTotals.instanceUs`
   * @throws CarpoolError `ledger-unavailable` if that took longer than 2 s. The record is still queued, and written once that is possible.
   */
  write(record: InvocationRecord, instanceUs: number): Promise<void>
  /** Never waits and never fails. */
  writeBackground(usage: BackgroundUsage): void
  /** Undefined while rows can be written, else why not, in words for an operator. */
  readonly unavailable: string | undefined
  /** Whether any invocation of the revision ran, now or before a restart; what was refused does not count. */
  hasRun(revision: string): boolean
  /** Totals of all that is committed, by key; only groups that have anything. @throws CarpoolError `data-unusable`, `draining` */
  usage(query: UsageQuery): Promise<UsageRow[]>
  /** Newest first means: the one that ended last first. @throws CarpoolError `data-unusable`, `draining` */
  invocations(query: InvocationQuery): Promise<InvocationRecord[]>
  /** Calls the listener, which must not throw, with each record once it is committed. Returns what stops it. */
  follow(listener: (record: InvocationRecord) => void): () => void
  /** Writes what is queued and ends the threads. After 5 s without success what is left goes to `onProblem`. */
  close(): Promise<void>
}
