import type { BackgroundUsage, CarpoolError, InvocationQuery, InvocationRecord, UsageQuery, UsageRow } from '@carpool/core'

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
  /** The time of day in ms of the epoch, by which old rows are deleted. Default: `Date.now`. */
  readonly now?: () => number
}

/** Told of a record. Must not throw. */
export type RecordListener = (record: InvocationRecord) => void

/** Told how a write ended. Must not throw. */
export type WriteDone = (error?: CarpoolError) => void

/** One row for each invocation, with hourly totals, in `ledger.sqlite`; what was written last may be in files beside it. */
export interface Ledger {
  /**
   * Calls back, in a later turn of the event loop, once the record is written, which a killed process does not lose; after a power cut the last
   * moments may be missing. Figures that are negative or no numbers are kept as 0.
   *
   * @param instanceUs see `UsageTotals.instanceUs`
   * @param done with CarpoolError `ledger-unavailable` after 2 s at most. The record is still queued then, and written once that is possible.
   */
  write(record: InvocationRecord, instanceUs: number, done: WriteDone): void
  /** Never waits and never fails. */
  writeBackground(usage: BackgroundUsage): void
  /** Undefined while records can be written, else why not, in words for an operator. */
  readonly unavailable: string | undefined
  /** Whether any invocation of the revision ran, now or before a restart; what was refused does not count. */
  hasRun(revision: string): boolean
  /**
   * Totals of all that was written before, by key; only groups that have anything.
   * @throws CarpoolError `ledger-unavailable` if some of that cannot be brought into the database now, `data-unusable`, `draining`
   */
  usage(query: UsageQuery): Promise<UsageRow[]>
  /** Newest first means: the one that ended last first. @throws CarpoolError as for {@link usage} */
  invocations(query: InvocationQuery): Promise<InvocationRecord[]>
  /** Calls the listener with each record once it is written. Returns what stops it. */
  follow(listener: RecordListener): () => void
  /** Writes what is queued, brings all into the database, and ends the thread. What was not written after 5 s goes to `onProblem`. */
  close(): Promise<void>
}
