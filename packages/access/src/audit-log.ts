import { appendFile, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { jsonLine, type AuditEntry, type Clock } from '@carpool/core'
import { readLastLines } from './last-lines.ts'

export interface AuditLogOptions {
  /** Size of the file at which it becomes the first of the older ones, in bytes. Default: 8 MiB. */
  readonly maxFileBytes?: number
  /** Older files that are kept. Default: 4. */
  readonly olderFiles?: number
  /** Most bytes that wait to be written. What comes on top is lost. Default: 1 MiB. */
  readonly maxBufferBytes?: number
  readonly clock: Clock
  /** Told of entries that could not be written, at most once a minute, with their number since it was told before. Must not throw. */
  readonly onProblem: (problem: { readonly lostEntries: number; readonly cause: unknown }) => void
}

const NEWLINE = 0x0a
const REPORT_INTERVAL_MS = 60_000

/**
 * One line of JSON for each entry, in a file with a few older ones behind it. To append never waits and never fails: what cannot be
 * written is counted and told. What a process that is killed had not written yet is lost.
 */
export class AuditLog {
  readonly #path: string
  readonly #options: AuditLogOptions
  #pending: string[] = []
  #bufferedBytes = 0
  #lostEntries = 0
  #reportedEntries = 0
  #reportedAtMs = Number.NEGATIVE_INFINITY
  #isWriting = false
  #queue: Promise<unknown> = Promise.resolve()
  /** Undefined until it was measured, and after a failure. */
  #sizeBytes: number | undefined
  /** The file may end in the middle of a line. */
  #isTorn = false

  /** @param path of the newest file; the older ones have a number before its ending: `audit.1.ndjson` for `audit.ndjson` */
  constructor(path: string, options: AuditLogOptions) {
    this.#path = path
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
    return this.#enqueue(() => readLastLines<AuditEntry>(this.#paths, limit))
  }

  /** From the newest file to the oldest. */
  get #paths(): string[] {
    const count = (this.#options.olderFiles ?? 4) + 1
    return Array.from({ length: count }, (_, age) => this.#pathOf(age))
  }

  #pathOf(age: number): string {
    return age === 0 ? this.#path : this.#path.replace(/(\.\w+)?$/, `.${age}$1`)
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => {})
    return result
  }

  async #write(lines: readonly string[]): Promise<void> {
    this.#isWriting = true
    const text = lines.join('')
    const bytes = Buffer.byteLength(text)
    try {
      this.#sizeBytes ??= await this.#measure()
      if (this.#sizeBytes > 0 && this.#sizeBytes + bytes > (this.#options.maxFileBytes ?? 8 * 1024 * 1024)) await this.#rotate()
      const start = this.#isTorn ? '\n' : ''
      await appendFile(this.#path, start + text, { mode: 0o600 })
      this.#isTorn = false
      this.#sizeBytes += start.length + bytes
    } catch (cause) {
      this.#sizeBytes = undefined
      this.#lose(lines.length, cause)
    } finally {
      this.#isWriting = false
      this.#bufferedBytes -= bytes
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

  async #rotate(): Promise<void> {
    const paths = this.#paths
    await rm(paths.at(-1) ?? '', { force: true })
    for (let age = paths.length - 2; age >= 0; age--) {
      await rename(this.#pathOf(age), this.#pathOf(age + 1)).catch((cause: NodeJS.ErrnoException) => {
        if (cause.code !== 'ENOENT') throw cause
      })
    }
    this.#sizeBytes = 0
    this.#isTorn = false
  }

  async #measure(): Promise<number> {
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 })
    const file = await open(this.#path, 'a+', 0o600)
    try {
      const { size } = await file.stat()
      const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1))
      this.#isTorn = size > 0 && bytesRead > 0 && buffer[0] !== NEWLINE
      return size
    } finally {
      await file.close()
    }
  }
}
