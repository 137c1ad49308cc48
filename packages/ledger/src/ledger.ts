import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  CarpoolError,
  monotonicClock,
  type BackgroundUsage,
  type InvocationQuery,
  type InvocationRecord,
  type UsageQuery,
  type UsageRow,
} from '@carpool/core'
import { DatabaseClient } from './database-client.ts'
import { describeJournalFailure, LEDGER_FILE, unusable } from './failure.ts'
import { JournalWriter } from './journal-writer.ts'
import type { Ledger, LedgerOptions, RecordListener, WriteDone } from './ledger-types.ts'
import { retentionClock } from './retention-clock.ts'
import type { ThreadReady } from './thread-messages.ts'
import { startThread, type Thread } from './thread.ts'

const DAY_MS = 86_400_000
const RETENTION_INTERVAL_MS = 600_000
const CLOSE_TIMEOUT_MS = 5000
/** What the database may take at the end, also if the journal took all the time that there is. */
const MIN_IMPORT_MS = 1000

/**
 * Opens the ledger of a data folder, or begins one. What a process that was killed left in its journal is brought in first. No other process
 * may have it open, which is up to the caller.
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
    journal = new JournalWriter({
      folder: dataDir,
      nextFile: ready.nextFile,
      nextSequence: ready.through + 1,
      onProblem,
      onWritten: () => client.written(),
      listeners,
    })
  } catch (cause) {
    await client.close(CLOSE_TIMEOUT_MS)
    throw new CarpoolError('data-unusable', describeJournalFailure(cause), { cause })
  }
  return new OpenLedger({ dataDir, journal, client, listeners, ready }, options)
}

interface Parts {
  readonly dataDir: string
  readonly journal: JournalWriter
  readonly client: DatabaseClient
  readonly listeners: Set<RecordListener>
  readonly ready: ThreadReady
}

class OpenLedger implements Ledger {
  readonly #journal: JournalWriter
  readonly #client: DatabaseClient
  readonly #listeners: Set<RecordListener>
  readonly #ran: Set<string>
  readonly #retentionTimer: NodeJS.Timeout
  #checker: Thread<never> | undefined
  #damage: string | undefined
  #closing: Promise<void> | undefined

  constructor({ dataDir, journal, client, listeners, ready }: Parts, options: LedgerOptions) {
    this.#journal = journal
    this.#client = client
    this.#listeners = listeners
    this.#ran = new Set(ready.ran)
    const nowMs = retentionClock(options.now ?? Date.now)
    const retain = (): void => client.retain(nowMs() - options.retentionDays * DAY_MS)
    this.#retentionTimer = setInterval(retain, RETENTION_INTERVAL_MS).unref()
    retain()
    if (!ready.isChecked) this.#check(join(dataDir, LEDGER_FILE), options)
  }

  get unavailable(): string | undefined {
    return this.#damage ?? this.#journal.failure ?? this.#client.unavailable(this.#journal.lastSequence)
  }

  write(record: InvocationRecord, instanceUs: number, done: WriteDone): void {
    if (record.outcome !== 'refused') this.#ran.add(record.revision)
    this.#journal.write(record, instanceUs, done)
  }

  writeBackground(usage: BackgroundUsage): void {
    this.#journal.write(usage, 0, undefined)
  }

  hasRun(revision: string): boolean {
    return this.#ran.has(revision)
  }

  usage(query: UsageQuery): Promise<UsageRow[]> {
    return this.#client.ask('usage', query)
  }

  invocations(query: InvocationQuery): Promise<InvocationRecord[]> {
    return this.#client.ask('invocations', query)
  }

  follow(listener: RecordListener): () => void {
    // Who follows twice is told twice, and stops once.
    const own: RecordListener = (record) => listener(record)
    this.#listeners.add(own)
    return () => this.#listeners.delete(own)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    clearInterval(this.#retentionTimer)
    this.#client.refuseQuestions()
    const beganMs = monotonicClock()
    // The last connection to be closed puts the write-ahead log into the file, and one that only reads cannot.
    await Promise.all([this.#checker?.terminate(), this.#journal.close(CLOSE_TIMEOUT_MS)])
    await this.#client.close(Math.max(MIN_IMPORT_MS, CLOSE_TIMEOUT_MS - (monotonicClock() - beganMs)))
  }

  /** Has a large file read on a thread of its own while the server serves. */
  #check(path: string, { onProblem }: LedgerOptions): void {
    this.#checker = startThread<never, string>('check', path, {
      onMessage: (message) => {
        this.#damage = message
        onProblem({ message })
      },
      onEnd: () => {},
    })
  }
}
