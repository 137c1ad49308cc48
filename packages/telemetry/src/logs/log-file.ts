import { jsonLine, NOBODY, type Clock, type Holder, type LogLine, type SharedPool } from '@carpool/core'
import { readLastLines, RotatingFile } from '@carpool/storage'

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

/**
 * The log of one function: a file and the older one that it replaced. Lines are written in batches. What touches the files goes
 * through one queue.
 */
export class LogFile {
  readonly #file: RotatingFile
  readonly #options: LogFileOptions
  /** Bytes that wait to be written, in all files together. */
  readonly #buffers: SharedPool
  readonly #drops: DropReport
  #pending: string[] = []
  #pendingBytes = 0
  #bufferedBytes = 0
  /** Whose share what is buffered takes from. */
  #holder: Holder = NOBODY
  #flushTimer: NodeJS.Timeout | undefined
  #queue: Promise<unknown> = Promise.resolve()
  #newestTime: string
  #isErased = false

  /** @param basePath the file's path without its ending */
  constructor(basePath: string, newestTime: string, options: LogFileOptions, buffers: SharedPool, drops: DropReport) {
    this.#file = new RotatingFile(`${basePath}.ndjson`, { maxFileBytes: options.maxFileBytes, olderFiles: 1 })
    this.#newestTime = newestTime
    this.#options = options
    this.#buffers = buffers
    this.#drops = drops
  }

  /** No line is younger. ISO 8601. */
  get newestTime(): string {
    return this.#newestTime
  }

  /** Nothing came since it was erased. */
  get isErased(): boolean {
    return this.#isErased
  }

  /** @param owner of the function */
  append(line: LogLine, owner: string): void {
    this.#isErased = false
    const text = jsonLine(line)
    const bytes = Buffer.byteLength(text)
    // What was taken for one owner is given back for the same.
    if (this.#bufferedBytes === 0 && (this.#holder.owner !== owner || this.#holder === NOBODY)) {
      this.#holder = { owner, functionName: line.function }
    }
    if (this.#bufferedBytes + bytes > this.#options.maxBufferBytes || !this.#buffers.tryTake(this.#holder, bytes)) {
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
      return skip() ? [] : readLastLines<LogLine>(this.#file.paths, limit)
    })
  }

  /** Deletes what was appended so far. */
  erase(): Promise<void> {
    this.#isErased = true
    void this.flush()
    return this.#enqueue(() => this.#file.erase())
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => {})
    return result
  }

  async #write(lines: readonly string[], bytes: number): Promise<void> {
    if (lines.length === 0) return
    try {
      await this.#file.append(lines.join(''))
    } catch (cause) {
      this.#drops.add(lines.length, { detail: 'The log of a function cannot be written.', cause })
    } finally {
      this.#bufferedBytes -= bytes
      this.#buffers.give(this.#holder, bytes)
    }
  }
}

/** Log lines that were lost since the last report. */
export interface LogProblem {
  readonly droppedLines: number
  readonly detail: string
  /** What the file system said about the last of them. */
  readonly cause?: unknown
}

const REPORT_INTERVAL_MS = 60_000

/** Counts lost lines, and reports them at most once per minute. */
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
