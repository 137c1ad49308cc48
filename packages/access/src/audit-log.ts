import { jsonLine, type AuditEntry, type Clock } from '@carpool/core'
import { readLastLines, RotatingFile } from '@carpool/storage'

export interface AuditLogOptions {
  /** Size of the file at which it becomes the first of the older ones, in bytes. Default: 8 MiB. */
  readonly maxFileBytes?: number
  /** Older files that are kept. Default: 4. */
  readonly olderFiles?: number
  /** Most bytes that wait to be written. What comes on top is lost. Default: 1 MiB. */
  readonly maxBufferBytes?: number
  readonly clock: Clock
  /** Called if entries could not be written, at most once a minute, with their number since the last call. Must not throw. */
  readonly onProblem: (problem: { readonly lostEntries: number; readonly cause: unknown }) => void
}

const REPORT_INTERVAL_MS = 60_000

/**
 * One line of JSON for each entry, in a file with a few older ones behind it. To append never waits and never fails: what cannot
 * be written is counted and reported. A killed process loses what it had not written yet.
 */
export class AuditLog {
  readonly #file: RotatingFile
  readonly #options: AuditLogOptions
  #pending: string[] = []
  #bufferedBytes = 0
  #lostEntries = 0
  #reportedEntries = 0
  #reportedAtMs = Number.NEGATIVE_INFINITY
  #isWriting = false
  #queue: Promise<unknown> = Promise.resolve()

  /** @param path of the newest file; the older ones have a number before its ending: `audit.1.ndjson` for `audit.ndjson` */
  constructor(path: string, options: AuditLogOptions) {
    const { maxFileBytes = 8 * 1024 * 1024, olderFiles = 4 } = options
    this.#file = new RotatingFile(path, { maxFileBytes, olderFiles })
    this.#options = options
  }

  /** Entries that could not be written so far. */
  get lostEntries(): number {
    return this.#lostEntries
  }

  append(entry: AuditEntry): void {
    const text = jsonLine(entry)
    const bytes = Buffer.byteLength(text)
    if (this.#bufferedBytes + bytes > (this.#options.maxBufferBytes ?? 1024 * 1024)) {
      return this.#lose(1, 'Entries come faster than the disk takes them.')
    }
    this.#bufferedBytes += bytes
    this.#pending.push(text)
    if (!this.#isWriting) void this.flush()
  }

  /** Settles when all that was appended so far is written or lost. Never rejects. */
  flush(): Promise<void> {
    return this.#enqueue(async () => {
      const lines = this.#pending
      if (lines.length === 0) return
      this.#pending = []
      await this.#write(lines)
    })
  }

  /** The newest entries, the newest last; those that wait to be written are among them. */
  newest(limit: number): Promise<AuditEntry[]> {
    void this.flush()
    return this.#enqueue(() => readLastLines<AuditEntry>(this.#file.paths, limit))
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => {})
    return result
  }

  async #write(lines: readonly string[]): Promise<void> {
    this.#isWriting = true
    const text = lines.join('')
    try {
      await this.#file.append(text)
    } catch (cause) {
      this.#lose(lines.length, cause)
    } finally {
      this.#isWriting = false
      this.#bufferedBytes -= Buffer.byteLength(text)
      if (this.#pending.length > 0) void this.flush()
    }
  }

  #lose(entries: number, cause: unknown): void {
    this.#lostEntries += entries
    const nowMs = this.#options.clock()
    if (nowMs - this.#reportedAtMs < REPORT_INTERVAL_MS) return
    this.#options.onProblem({ lostEntries: this.#lostEntries - this.#reportedEntries, cause })
    this.#reportedAtMs = nowMs
    this.#reportedEntries = this.#lostEntries
  }
}
