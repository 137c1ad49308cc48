import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import {
  CarpoolError,
  monotonicClock,
  type BackgroundUsage,
  type InvocationQuery,
  type InvocationRecord,
  type UsageQuery,
  type UsageRow,
} from '@carpool/core'
import { startThread } from '@carpool/core/start-thread'
import { DatabaseClient } from './database-client.ts'
import { describeJournalFailure, LEDGER_FILE, unusable, type LedgerProblem } from './failure.ts'
import { HeldRefusals } from './held-refusals.ts'
import { JournalWriter, type RecordListener, type WriteDone } from './journal-writer.ts'
import { retentionClock } from './retention.ts'
import type { ThreadReady } from './thread-messages.ts'

const DAY_MS = 86_400_000
const RETENTION_INTERVAL_MS = 600_000
const CLOSE_TIMEOUT_MS = 5000
/** What the database may take at the end, also if the journal took all the time that there is. */
const MIN_IMPORT_MS = 1000

export interface LedgerOptions {
  /** Age at which the row of an invocation is deleted, in days; at least 1. The hourly totals stay. */
  readonly retentionDays: number
  /** Must not throw. */
  readonly onProblem: (problem: LedgerProblem) => void
  /** The time of day in ms of the epoch, by which old rows are deleted. Default: `Date.now`. */
  readonly now?: () => number
}

/**
 * Opens the ledger of a data folder, or begins one, and recovers what a killed process left in its journal. The caller makes sure
 * that no other process has it open.
 * @throws CarpoolError `data-unusable` if a file is damaged, cannot be written, or was written by a newer Carpool
 */
export async function openLedger(dataDir: string, options: LedgerOptions): Promise<Ledger> {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw unusable(cause)
  }
  const { onProblem } = options
  const listeners = new Set<RecordListener>()
  let journal: JournalWriter | undefined
  const { client, ready } = await DatabaseClient.start({ dataDir, onProblem, position: () => journal?.position })
  try {
    const { nextFile, through } = ready
    const onWritten = (): void => client.written()
    journal = new JournalWriter({ folder: dataDir, nextFile, nextSequence: through + 1, onProblem, onWritten, listeners })
  } catch (cause) {
    await client.close(CLOSE_TIMEOUT_MS)
    throw new CarpoolError('data-unusable', describeJournalFailure(cause), { cause })
  }
  return new Ledger({ dataDir, journal, client, listeners, ready }, options)
}

interface Parts {
  readonly dataDir: string
  readonly journal: JournalWriter
  readonly client: DatabaseClient
  readonly listeners: Set<RecordListener>
  readonly ready: ThreadReady
}

/** One row for each invocation, with hourly totals, in `ledger.sqlite`; what was written last may be in files beside it. */
export class Ledger {
  readonly #journal: JournalWriter
  readonly #client: DatabaseClient
  readonly #listeners: Set<RecordListener>
  readonly #refusals: HeldRefusals
  readonly #ran: Set<string>
  readonly #retentionTimer: NodeJS.Timeout
  #checker: Worker | undefined
  #damage: string | undefined
  #closing: Promise<void> | undefined

  constructor({ dataDir, journal, client, listeners, ready }: Parts, options: LedgerOptions) {
    this.#journal = journal
    this.#client = client
    this.#listeners = listeners
    this.#ran = new Set(ready.ran)
    this.#refusals = new HeldRefusals({
      isWritable: () => this.unavailable === undefined && journal.waiting === 0,
      write: (record) => journal.write(record, 0, undefined),
      onProblem: options.onProblem,
    })
    const nowMs = retentionClock(options.now ?? Date.now)
    const retain = (): void => client.retain(nowMs() - options.retentionDays * DAY_MS)
    this.#retentionTimer = setInterval(retain, RETENTION_INTERVAL_MS).unref()
    retain()
    if (!ready.isChecked) this.#check(join(dataDir, LEDGER_FILE), options)
  }

  /** Undefined while records can be written, else why not, in words for an operator. */
  get unavailable(): string | undefined {
    return this.#damage ?? this.#journal.failure ?? this.#client.unavailable(this.#journal.lastSequence)
  }

  /**
   * Calls back, in a later turn of the event loop, once the record is written. A killed process does not lose it; a power cut may
   * take the last moments. Figures that are negative or no numbers are kept as 0.
   *
   * @param instanceUs see `UsageTotals.instanceUs`
   * @param done with CarpoolError `ledger-unavailable` after 2 s at most. The record stays queued then, and is written when
   * possible.
   */
  write(record: InvocationRecord, instanceUs: number, done: WriteDone): void {
    if (record.outcome !== 'refused') this.#ran.add(record.revision)
    this.#journal.write(record, instanceUs, done)
  }

  /**
   * Keeps the record of a call that was refused because the ledger is {@link unavailable}, in memory, and writes it when it is
   * not any more, or at the end.
   * @returns whether there is room for it; `onProblem` is told later how many records there are not for lack of it
   */
  hold(record: InvocationRecord): boolean {
    return this.#refusals.hold(record)
  }

  /** Never waits and never fails. */
  writeBackground(usage: BackgroundUsage): void {
    this.#journal.write(usage, 0, undefined)
  }

  /** Whether any invocation of the revision ran, now or before a restart; what was refused does not count. */
  hasRun(revision: string): boolean {
    return this.#ran.has(revision)
  }

  /**
   * Totals of all that was written before, by key; only groups that have anything.
   * @throws CarpoolError `ledger-unavailable` if some of it cannot be brought into the database now, `data-unusable`, `draining`
   */
  usage(query: UsageQuery): Promise<UsageRow[]> {
    return this.#client.ask('usage', query)
  }

  /** Newest first means: the one that ended last first. @throws CarpoolError as for {@link usage} */
  invocations(query: InvocationQuery): Promise<InvocationRecord[]> {
    return this.#client.ask('invocations', query)
  }

  /** Calls the listener with each record once it is written. Returns what stops it. */
  follow(listener: RecordListener): () => void {
    // One that follows twice is called twice, and stops once.
    const own: RecordListener = (record) => listener(record)
    this.#listeners.add(own)
    return () => this.#listeners.delete(own)
  }

  /**
   * Writes what is queued, brings all into the database, and ends the thread. What is not written after 5 s goes to `onProblem`.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    clearInterval(this.#retentionTimer)
    this.#client.refuseQuestions()
    this.#refusals.close()
    const beganMs = monotonicClock()
    // The last connection to be closed puts the write-ahead log into the file, and one that only reads cannot.
    await Promise.all([this.#checker?.terminate(), this.#journal.close(CLOSE_TIMEOUT_MS)])
    await this.#client.close(Math.max(MIN_IMPORT_MS, CLOSE_TIMEOUT_MS - (monotonicClock() - beganMs)))
  }

  /** Has a large file read on a thread of its own while the server serves. */
  #check(path: string, { onProblem }: LedgerOptions): void {
    const options = { workerData: path, name: 'carpool-ledger' }
    this.#checker = startThread('check-thread', import.meta.url, options, () => {})
    this.#checker.on('message', (message: string) => {
      this.#damage = message
      onProblem({ message })
    })
  }
}
