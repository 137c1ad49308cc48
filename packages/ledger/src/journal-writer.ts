import { closeSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { CarpoolError, monotonicClock } from '@carpool/core'
import { describeJournalFailure } from './failure.ts'
import { isInvocation, JournalBlock, type Entry } from './journal-block.ts'
import { header, HEADER_BYTES, journalFileName, type JournalPosition } from './journal-format.ts'
import type { LedgerProblem, RecordListener, WriteDone } from './ledger-types.ts'

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
  /** Called with each record that is written, before those who wait for it. */
  readonly listeners: ReadonlySet<RecordListener>
}

interface Queued {
  readonly entry: Entry
  readonly instanceUs: number
  /** Absent when nobody waits, or nobody waits any more. */
  done: WriteDone | undefined
  /** Since when it waits for a disk that fails. */
  sinceMs: number
  refusal: CarpoolError | undefined
}

interface OpenFile {
  readonly number: number
  readonly descriptor: number
  /** Of the last whole block. */
  end: number
}

/**
 * Appends records to the journal: those of one turn of the event loop with one write, after everything else of that turn. It writes on the thread
 * of the caller, which is what makes it cheap: the system takes a copy, and no other thread has to be waited for.
 */
export class JournalWriter {
  readonly #options: JournalWriterOptions
  /** What is in the block stays there until it is written, so that it keeps its sequences and its place. */
  readonly #block = new JournalBlock()
  #queue: Queued[] = []
  /** How many of the queue the block takes along, with those that were refused. */
  #encoded = 0
  #nextSequence: number
  #nextFile: number
  #file: OpenFile | undefined
  #turn: NodeJS.Immediate | undefined
  #retryTimer: NodeJS.Timeout | undefined
  #failure: string | undefined
  #isClosing = false
  #onEmpty: (() => void) | undefined

  /** Begins a file. Throws what the system says. */
  constructor(options: JournalWriterOptions) {
    this.#options = options
    this.#nextSequence = options.nextSequence
    this.#nextFile = options.nextFile
    this.#file = this.#openFile()
  }

  /** Why nothing can be written, in words for an operator. */
  get failure(): string | undefined {
    return this.#failure
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
    if (this.#isClosing) this.#lose(entry, 'A record came after the ledger was closed.', done)
    else if (this.#queue.length >= MAX_QUEUED) this.#lose(entry, `More than ${MAX_QUEUED} records wait for the ledger.`, done)
    else {
      this.#queue.push({
        entry,
        instanceUs,
        done,
        sinceMs: this.#failure === undefined ? 0 : monotonicClock(),
        refusal: undefined,
      })
      if (this.#failure === undefined) this.#turn ??= setImmediate(this.#writeQueue)
    }
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

  #lose(entry: Entry, message: string, done: WriteDone | undefined): void {
    this.#options.onProblem({ message, lost: [entry] })
    if (done !== undefined) setImmediate(done, new CarpoolError('ledger-unavailable', 'The invocation could not be recorded.'))
  }

  /** Writes what is queued, in as many blocks as it takes, and tells whoever waits for it. */
  readonly #writeQueue = (): void => {
    clearImmediate(this.#turn)
    this.#turn = undefined
    const { length } = this.#queue
    let written = 0
    while (written < length) {
      if (this.#block.byteLength === 0) this.#encodeFrom(written)
      if (!this.#writeBlock()) break
      written += this.#encoded
      this.#block.clear()
    }
    if (written === 0) return
    const settled = written === length ? this.#queue : this.#queue.splice(0, written)
    // What those who are called back write comes with the next turn.
    if (written === length) this.#queue = []
    this.#options.onWritten()
    for (const listener of this.#options.listeners) {
      for (const { entry, refusal } of settled) if (refusal === undefined && isInvocation(entry)) listener(entry)
    }
    for (const { done, refusal } of settled) done?.(refusal)
    if (this.#queue.length === 0) this.#onEmpty?.()
  }

  #encodeFrom(from: number): void {
    if (this.#file !== undefined && this.#file.end >= FILE_BYTES) this.#beginNextFile(this.#file)
    this.#encoded = 0
    for (let index = from; index < this.#queue.length; index += 1) {
      const queued = this.#queue[index]
      if (queued === undefined) break
      const sequence = this.#nextSequence + this.#block.records
      const result = this.#block.put(queued.entry, queued.instanceUs, sequence)
      if (result === 'full') break
      this.#encoded += 1
      if (result !== 'unsound' || queued.refusal !== undefined) continue
      const message = 'A record has an id that is no UUID, or names that are too long.'
      this.#options.onProblem({ message, lost: [queued.entry] })
      queued.refusal = new CarpoolError('internal', 'The invocation could not be recorded.')
    }
    this.#block.seal()
  }

  /** Gives false if it cannot be written now: then it is tried again. */
  #writeBlock(): boolean {
    try {
      const file = (this.#file ??= this.#openFile())
      const { bytes, byteLength, records } = this.#block
      // If there is no room for all of it, the second write says why.
      for (let done = 0; done < byteLength; ) done += writeSync(file.descriptor, bytes, done, byteLength - done, file.end + done)
      file.end += byteLength
      this.#nextSequence += records
    } catch (cause) {
      this.#fail(cause)
      return false
    }
    if (this.#failure !== undefined) {
      this.#failure = undefined
      this.#options.onProblem({ message: 'The ledger is written again.' })
    }
    return true
  }

  #fail(cause: unknown): void {
    if (!this.#cutBack(cause)) {
      // In another file it needs the names again that this one has.
      this.#closeFile()
      this.#block.beginFile()
    }
    const message = describeJournalFailure(cause)
    if (this.#failure !== message) this.#options.onProblem({ message, cause })
    this.#failure = message
    const nowMs = monotonicClock()
    for (const queued of this.#queue) {
      if (queued.sinceMs === 0) queued.sinceMs = nowMs
      // Not later than at the time that is promised, rather than at the first try after it.
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

function notRecorded(): CarpoolError {
  return new CarpoolError('ledger-unavailable', `The invocation could not be recorded within ${WRITE_TIMEOUT_MS / 1000} s.`)
}
