import { closeSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { CarpoolError, monotonicClock, type InvocationRecord } from '@carpool/core'
import { describeJournalFailure, Failure, type LedgerProblem } from './failure.ts'
import { isInvocation, JournalBlock, type Entry } from './journal-block.ts'
import { header, HEADER_BYTES, journalFileName, type JournalPosition } from './journal-format.ts'

/** Called with each record that is written. Must not throw. */
export type RecordListener = (record: InvocationRecord) => void

/** Called when a write has ended. Must not throw. */
export type WriteDone = (error?: CarpoolError) => void

/** Longest time that a write waits. */
const WRITE_TIMEOUT_MS = 2000
const RETRY_MS = 500
/** Most entries kept in memory while they cannot be written. */
const MAX_QUEUED = 100_000
/** When a file is larger than this, another one is begun. */
const FILE_BYTES = 16 * 1024 * 1024

export interface JournalWriterOptions {
  readonly folder: string
  /** Numbers that nothing has yet. */
  readonly nextFile: number
  readonly nextSequence: number
  readonly onProblem: (problem: LedgerProblem) => void
  /** Called after each write. */
  readonly onWritten: () => void
  /** Called before the `done` of the same write. */
  readonly listeners: ReadonlySet<RecordListener>
}

interface Queued {
  readonly entry: Entry
  readonly instanceUs: number
  /** Undefined: there is none, or it was called already. */
  done: WriteDone | undefined
  /** Since when it waits for a disk that fails. */
  sinceMs: number
}

interface OpenFile {
  readonly number: number
  readonly descriptor: number
  /** Of the last whole block. */
  end: number
}

/**
 * Appends records to the journal: those of one turn of the event loop with one write, after everything else of that turn. It
 * writes on the caller's thread, which is cheap: the system takes a copy, and there is no other thread to wait for.
 */
export class JournalWriter {
  readonly #options: JournalWriterOptions
  readonly #failure: Failure
  /** What is in the block stays there until it is written, so that it keeps its sequences and its place. */
  readonly #block = new JournalBlock()
  #queue: Queued[] = []
  /** How many of the queue are in the block. */
  #encoded = 0
  #nextSequence: number
  #nextFile: number
  #file: OpenFile | undefined
  #turn: NodeJS.Immediate | undefined
  #retryTimer: NodeJS.Timeout | undefined
  #isClosing = false
  #onEmpty: (() => void) | undefined

  /** Begins a file. @throws Error of the system */
  constructor(options: JournalWriterOptions) {
    this.#options = options
    this.#failure = new Failure(options.onProblem)
    this.#nextSequence = options.nextSequence
    this.#nextFile = options.nextFile
    this.#file = this.#openFile()
  }

  /** Why nothing can be written, in words for an operator. */
  get failure(): string | undefined {
    return this.#failure.message
  }

  /** How many entries are not written yet. */
  get waiting(): number {
    return this.#queue.length
  }

  /** Undefined once it is closed. */
  get position(): JournalPosition | undefined {
    // The end of a file that had to be given up is not known; the next one begins behind it.
    if (this.#file === undefined) return this.#isClosing ? undefined : { file: this.#nextFile, end: 0 }
    return { file: this.#file.number, end: this.#file.end }
  }

  /** Sequence of the record that was written last. */
  get lastSequence(): number {
    return this.#nextSequence - 1
  }

  write(entry: Entry, instanceUs: number, done: WriteDone | undefined): void {
    if (this.#isClosing) return this.#lose({ entry, done }, 'A record came after the ledger was closed.')
    if (this.#queue.length >= MAX_QUEUED)
      return this.#lose({ entry, done }, `More than ${MAX_QUEUED} records wait for the ledger.`)
    const isFailing = this.#failure.message !== undefined
    this.#queue.push({ entry, instanceUs, done, sinceMs: isFailing ? monotonicClock() : 0 })
    if (!isFailing) this.#turn ??= setImmediate(this.#writeQueue)
  }

  /** Writes what waits. What cannot be written within that time goes to `onProblem`. */
  async close(timeoutMs: number): Promise<void> {
    this.#isClosing = true
    this.#writeQueue()
    if (this.#queue.length > 0) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#onEmpty = resolve
      const timer = setTimeout(resolve, timeoutMs)
      await promise
      clearTimeout(timer)
    }
    clearTimeout(this.#retryTimer)
    const lost = this.#queue
    this.#queue = []
    for (const { done } of lost) done?.(notRecorded())
    if (lost.length > 0) {
      const message = `${lost.length} records could not be written to the ledger before the end.`
      this.#options.onProblem({ message, lost: lost.map(({ entry }) => entry) })
    }
    this.#closeFile()
  }

  #lose(
    { entry, done }: Pick<Queued, 'entry' | 'done'>,
    message: string,
    code: 'ledger-unavailable' | 'internal' = 'ledger-unavailable',
  ): void {
    this.#options.onProblem({ message, lost: [entry] })
    if (done !== undefined) setImmediate(done, new CarpoolError(code, 'The invocation could not be recorded.'))
  }

  /** Writes what is queued, in as many blocks as it takes, and calls back those who wait for it. */
  readonly #writeQueue = (): void => {
    clearImmediate(this.#turn)
    this.#turn = undefined
    let written = 0
    while (written < this.#queue.length) {
      if (this.#block.byteLength === 0) this.#encodeFrom(written)
      if (!this.#writeBlock()) break
      written += this.#encoded
      this.#block.clear()
    }
    if (written > 0) this.#settle(written)
    if (this.#queue.length === 0) this.#onEmpty?.()
  }

  /** The first of the queue are in the journal. What those who are called back write comes with the next turn. */
  #settle(written: number): void {
    const settled = this.#queue
    this.#queue = written === settled.length ? [] : settled.splice(written)
    this.#options.onWritten()
    for (const listener of this.#options.listeners) {
      for (const { entry } of settled) if (isInvocation(entry)) listener(entry)
    }
    for (const { done } of settled) done?.()
  }

  #encodeFrom(from: number): void {
    if (this.#file !== undefined && this.#file.end >= FILE_BYTES) this.#beginNextFile(this.#file)
    let index = from
    while (index < this.#queue.length) {
      const { entry, instanceUs } = this.#queue[index]!
      const result = this.#block.put(entry, instanceUs, this.#nextSequence + this.#block.records)
      if (result === 'full') break
      if (result === 'put') index += 1
      else for (const lost of this.#queue.splice(index, 1)) this.#lose(lost, UNSOUND, 'internal')
    }
    this.#encoded = index - from
    this.#block.seal()
  }

  /** Gives false if it cannot be written now: then it is tried again. */
  #writeBlock(): boolean {
    try {
      const file = (this.#file ??= this.#openFile())
      const { bytes, byteLength, records } = this.#block
      // If there is no room for all of it, the second write throws.
      for (let done = 0; done < byteLength; ) done += writeSync(file.descriptor, bytes, done, byteLength - done, file.end + done)
      file.end += byteLength
      this.#nextSequence += records
    } catch (cause) {
      this.#fail(cause)
      return false
    }
    this.#failure.clear()
    return true
  }

  #fail(cause: unknown): void {
    if (!this.#cutBack(cause)) {
      // In another file it needs the names again that this one has.
      this.#closeFile()
      this.#block.beginFile()
    }
    this.#failure.set(describeJournalFailure(cause), cause)
    const nowMs = monotonicClock()
    for (const queued of this.#queue) {
      if (queued.sinceMs === 0) queued.sinceMs = nowMs
      // Fails before the timeout rather than at the first retry after it.
      if (queued.sinceMs > nowMs + RETRY_MS - WRITE_TIMEOUT_MS) continue
      queued.done?.(notRecorded())
      queued.done = undefined
    }
    clearTimeout(this.#retryTimer)
    this.#retryTimer = setTimeout(this.#writeQueue, RETRY_MS)
  }

  /** Takes what was written of a block out of the file again. Gives false if the file is not to be used any more. */
  #cutBack(cause: unknown): boolean {
    if (this.#file === undefined || (cause as NodeJS.ErrnoException).code === 'EIO') return false
    try {
      ftruncateSync(this.#file.descriptor, this.#file.end)
      return true
    } catch {
      return false
    }
  }

  #beginNextFile(present: OpenFile): void {
    try {
      this.#file = this.#openFile()
      closeSync(present.descriptor)
      this.#block.beginFile()
    } catch {
      // The present file serves as well; if it cannot be written either, that shows itself.
    }
  }

  #openFile(): OpenFile {
    const number = this.#nextFile
    const path = join(this.#options.folder, journalFileName(number))
    const descriptor = openSync(path, 'wx', 0o600)
    try {
      if (writeSync(descriptor, header(), 0, HEADER_BYTES, 0) < HEADER_BYTES) throw new Error('There is no room for a header.')
    } catch (cause) {
      closeSync(descriptor)
      rmSync(path, { force: true })
      throw cause
    }
    this.#nextFile += 1
    return { number, descriptor, end: HEADER_BYTES }
  }

  #closeFile(): void {
    if (this.#file !== undefined) closeSync(this.#file.descriptor)
    this.#file = undefined
  }
}

const UNSOUND = 'A record has an id that is no UUID, or names that are too long.'

function notRecorded(): CarpoolError {
  return new CarpoolError('ledger-unavailable', `The invocation could not be recorded within ${WRITE_TIMEOUT_MS / 1000} s.`)
}
