import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  CarpoolError,
  type BackgroundUsage,
  type InvocationQuery,
  type InvocationRecord,
  type UsageQuery,
  type UsageRow,
} from '@carpool/core'
import { LEDGER_FILE, unusable } from './failure.ts'
import { LedgerReader } from './ledger-reader.ts'
import type { Ledger, LedgerOptions } from './ledger-types.ts'
import { LedgerWriter } from './ledger-writer.ts'
import { retentionClock } from './retention-clock.ts'
import { isInvocation } from './write-queue.ts'

const DAY_MS = 86_400_000
const RETENTION_INTERVAL_MS = 600_000

type Listener = (record: InvocationRecord) => void

/**
 * Opens the ledger of a data folder, or begins one.
 * @throws CarpoolError `data-unusable` if the file is damaged, cannot be written, or was written by a newer Carpool
 */
export async function openLedger(dataDir: string, options: LedgerOptions): Promise<Ledger> {
  const path = join(dataDir, LEDGER_FILE)
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw unusable(cause)
  }
  const { onProblem } = options
  const listeners = new Set<Listener>()
  const { writer, isChecked } = await LedgerWriter.open(path, {
    onProblem,
    ...(options.underWay === undefined ? {} : { underWay: options.underWay }),
    onCommitted: (entries) => {
      if (listeners.size === 0) return
      for (const entry of entries) if (isInvocation(entry)) for (const listener of listeners) listener(entry)
    },
  })
  return new OpenLedger(writer, path, isChecked, listeners, options)
}

class OpenLedger implements Ledger {
  readonly #writer: LedgerWriter
  readonly #reader: LedgerReader
  readonly #listeners: Set<Listener>
  readonly #retentionTimer: NodeJS.Timeout
  #checker: LedgerReader | undefined
  #damage: string | undefined

  constructor(writer: LedgerWriter, path: string, isChecked: boolean, listeners: Set<Listener>, options: LedgerOptions) {
    this.#writer = writer
    this.#reader = new LedgerReader(path)
    this.#listeners = listeners
    const nowMs = retentionClock(options.now ?? Date.now)
    const retain = (): void => writer.retain(nowMs() - options.retentionDays * DAY_MS)
    this.#retentionTimer = setInterval(retain, RETENTION_INTERVAL_MS).unref()
    retain()
    if (!isChecked) void this.#check(path, options)
  }

  get unavailable(): string | undefined {
    return this.#damage ?? this.#writer.unavailable
  }

  write(record: InvocationRecord, instanceUs: number): Promise<void> {
    return this.#writer.write(record, instanceUs)
  }

  writeBackground(usage: BackgroundUsage): void {
    this.#writer.writeBackground(usage)
  }

  hasRun(revision: string): boolean {
    return this.#writer.hasRun(revision)
  }

  usage(query: UsageQuery): Promise<UsageRow[]> {
    return this.#reader.ask('usage', query)
  }

  invocations(query: InvocationQuery): Promise<InvocationRecord[]> {
    return this.#reader.ask('invocations', query)
  }

  follow(listener: Listener): () => void {
    // Who follows twice is told twice, and stops once.
    const own: Listener = (record) => listener(record)
    this.#listeners.add(own)
    return () => this.#listeners.delete(own)
  }

  async close(): Promise<void> {
    clearInterval(this.#retentionTimer)
    // The last connection to be closed puts the write-ahead log into the file, and one that only reads cannot.
    await Promise.all([this.#checker?.close(), this.#reader.close()])
    await this.#writer.close()
  }

  /** Reads a large file on a thread of its own while the server serves. */
  async #check(path: string, { onProblem }: LedgerOptions): Promise<void> {
    const checker = new LedgerReader(path)
    this.#checker = checker
    try {
      await checker.ask('check', null)
    } catch (cause) {
      const { code, message } = CarpoolError.from(cause)
      if (code === 'draining') return
      if (code === 'data-unusable') this.#damage = message
      onProblem({ message, cause })
    } finally {
      await checker.close()
    }
  }
}
