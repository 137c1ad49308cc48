import { appendFile, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { jsonLine, type LogLine } from '@carpool/core'
import type { BufferBudget } from './buffer-budget.ts'
import type { DropReport } from './drop-report.ts'
import { readNewest } from './read-newest.ts'

export interface LogFileOptions {
  /** Size at which the file becomes the older one, in place of the one before. */
  readonly maxFileBytes: number
  /** Most bytes of one function that wait to be written. */
  readonly maxBufferBytes: number
  /** How long a line may wait for others to be written with. */
  readonly flushDelayMs: number
}

/** Enough that a write is worth its system calls. */
const BATCH_BYTES = 64 * 1024
const NEWLINE = 0x0a

/**
 * The log of one function: a file and the older one that it replaced. Lines are written in batches, by a file that is open only as
 * long as that takes, so that ten thousand functions hold no descriptors. What touches the files goes through one queue.
 */
export class LogFile {
  readonly #path: string
  readonly #olderPath: string
  readonly #options: LogFileOptions
  readonly #budget: BufferBudget
  readonly #drops: DropReport
  #pending: string[] = []
  #pendingBytes = 0
  #bufferedBytes = 0
  #flushTimer: NodeJS.Timeout | undefined
  #queue: Promise<unknown> = Promise.resolve()
  /** Undefined until it was measured, and after a failure. */
  #sizeBytes: number | undefined
  /** The file may end in the middle of a line. */
  #isTorn = false
  #newestTime: string

  /** @param basePath the file's path without its ending */
  constructor(basePath: string, newestTime: string, options: LogFileOptions, budget: BufferBudget, drops: DropReport) {
    this.#path = `${basePath}.ndjson`
    this.#olderPath = `${basePath}.1.ndjson`
    this.#newestTime = newestTime
    this.#options = options
    this.#budget = budget
    this.#drops = drops
  }

  /** No line is younger. ISO 8601. */
  get newestTime(): string {
    return this.#newestTime
  }

  append(line: LogLine): void {
    const text = jsonLine(line)
    const bytes = Buffer.byteLength(text)
    if (this.#bufferedBytes + bytes > this.#options.maxBufferBytes || !this.#budget.take(bytes)) {
      this.#drops.add(1, { detail: 'Functions log faster than the disk takes it.' })
      return
    }
    this.#bufferedBytes += bytes
    this.#pendingBytes += bytes
    this.#pending.push(text)
    if (line.time > this.#newestTime) this.#newestTime = line.time
    if (this.#pendingBytes >= BATCH_BYTES) void this.flush()
    else this.#flushTimer ??= setTimeout(() => void this.flush(), this.#options.flushDelayMs).unref()
  }

  /** Settles when every line appended so far is written or dropped. Never rejects. */
  flush(): Promise<void> {
    clearTimeout(this.#flushTimer)
    this.#flushTimer = undefined
    const lines = this.#pending
    const bytes = this.#pendingBytes
    this.#pending = []
    this.#pendingBytes = 0
    return this.#enqueue(() => this.#write(lines, bytes))
  }

  /**
   * The last lines of those appended before this call, and of no others, oldest first.
   * @param turn waited for before reading
   * @param skip asked after that: if so, gives none
   */
  newest(limit: number, turn: Promise<unknown>, skip = (): boolean => false): Promise<LogLine[]> {
    void this.flush()
    return this.#enqueue(async () => {
      await turn
      return skip() ? [] : readNewest([this.#path, this.#olderPath], limit)
    })
  }

  /** Deletes what was appended so far. */
  erase(): Promise<void> {
    void this.flush()
    return this.#enqueue(async () => {
      this.#sizeBytes = undefined
      await Promise.all([rm(this.#path, { force: true }), rm(this.#olderPath, { force: true })])
    })
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => {})
    return result
  }

  async #write(lines: readonly string[], bytes: number): Promise<void> {
    if (lines.length === 0) return
    try {
      this.#sizeBytes ??= await this.#measure()
      if (this.#sizeBytes > 0 && this.#sizeBytes + bytes > this.#options.maxFileBytes) await this.#rotate()
      const text = lines.join('')
      const start = this.#isTorn ? '\n' : ''
      await appendFile(this.#path, start + text, { mode: 0o600 })
      this.#isTorn = false
      this.#sizeBytes += start.length + bytes
    } catch (cause) {
      this.#sizeBytes = undefined
      this.#drops.add(lines.length, { detail: 'The log of a function cannot be written.', cause })
    } finally {
      this.#bufferedBytes -= bytes
      this.#budget.give(bytes)
    }
  }

  async #rotate(): Promise<void> {
    await rename(this.#path, this.#olderPath)
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
