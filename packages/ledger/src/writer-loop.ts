import { receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import type { BatchWriter } from './batch-writer.ts'
import { HOLD_MS, isHoldWorthwhile } from './commit-pace.ts'
import { describeFailure } from './failure.ts'
import type { Retention } from './retention.ts'
import { ahead, WORD } from './ring.ts'
import type { FromWriter, ToWriter } from './writer-messages.ts'

/** Most rows of one transaction: a few ms. */
const MAX_BATCH_ROWS = 1024
/** When sums are put into the totals: after so many rows, or so long after the first of fewer. */
const SUM_ROWS = 50_000
const SUM_INTERVAL_MS = 1000
const RETRY_MS = 500
/** Between two steps of retention: they take a small part of the thread's time. */
const RETENTION_PAUSE_MS = 10

export interface WriterLoopParts {
  readonly words: Int32Array
  readonly port: MessagePort
  readonly writer: BatchWriter
  readonly retention: Retention
  readonly isFileInPlace: () => boolean
}

/**
 * Writes what comes into the ring until it is closed. It sleeps on shared memory, not in an event loop, so that a batch begins without a
 * message. Besides the batches it has two duties, each in short steps: hourly totals and retention.
 */
export class WriterLoop {
  readonly #parts: WriterLoopParts
  readonly #words: Int32Array
  #mail = 0
  #taken = 0
  #isBlocked = false
  #isHeld = false
  #rowsOfPace = 0
  #paceBeganMs = 0
  #sumsDueMs = Number.POSITIVE_INFINITY
  #retentionDueMs = Number.POSITIVE_INFINITY

  constructor(parts: WriterLoopParts) {
    this.#parts = parts
    this.#words = parts.words
  }

  /** Ends when the ring is closed and everything is written, or at the first failure after the last batch. */
  run(): void {
    const words = this.#words
    let wasDuty = false
    for (;;) {
      // Each word before what it announces.
      const signal = Atomics.load(words, WORD.signal)
      const hurry = Atomics.load(words, WORD.hurry)
      const isClosing = Atomics.load(words, WORD.closing) === 1
      const count = Math.min(ahead(Atomics.load(words, WORD.published), this.#taken), MAX_BATCH_ROWS)
      // After the count: the revision of a slot was posted before the slot was filled.
      if (Atomics.load(words, WORD.mail) !== this.#mail) this.#receive()
      const duty: (() => boolean) | undefined = wasDuty && count > 0 ? undefined : this.#dutyOf(isClosing)
      wasDuty = duty !== undefined
      if (duty !== undefined) {
        if (!duty() && isClosing && count === 0) return
      } else if (count > 0) this.#writeBatch(count, hurry)
      else if (isClosing) return
      else this.#sleep(signal)
    }
  }

  /** What is to be done besides batches, if anything; it tells whether it could be done. */
  #dutyOf(isClosing: boolean): (() => boolean) | undefined {
    const { writer } = this.#parts
    const nowMs = performance.now()
    const hasSums = writer.rowsToSum > 0
    if (hasSums && (isClosing || nowMs >= this.#sumsDueMs || writer.rowsToSum >= SUM_ROWS)) return () => this.#storeSums()
    return !isClosing && nowMs >= this.#retentionDueMs ? () => this.#retain() : undefined
  }

  #writeBatch(count: number, hurry: number): void {
    const words = this.#words
    const beganMs = performance.now()
    Atomics.store(words, WORD.taken, (this.#taken + count) | 0)
    if (!this.#attempt(() => this.#parts.writer.write(this.#taken, count))) return
    this.#taken = (this.#taken + count) | 0
    Atomics.store(words, WORD.committed, this.#taken)
    if (Atomics.exchange(words, WORD.told, 1) === 0) this.#tell({ kind: 'committed' })
    this.#sumsDueMs = Math.min(this.#sumsDueMs, beganMs + SUM_INTERVAL_MS)
    this.#rowsOfPace += count
    if (beganMs - this.#paceBeganMs >= HOLD_MS) {
      this.#isHeld = isHoldWorthwhile(this.#rowsOfPace, beganMs - this.#paceBeganMs)
      this.#paceBeganMs = beganMs
      this.#rowsOfPace = 0
    }
    // Not at all if the word has changed since before the batch was begun.
    if (this.#isHeld) Atomics.wait(words, WORD.hurry, hurry, Math.max(0, beganMs + HOLD_MS - performance.now()))
  }

  #storeSums(): boolean {
    // Rows in a file that was deleted are lost, so this thread ends, and the next one begins a new file.
    if (!this.#parts.isFileInPlace()) throw new Error('ledger.sqlite was moved or deleted while it was in use.')
    let isMore = false
    const isDone = this.#attempt(() => {
      isMore = this.#parts.writer.storeSums()
    })
    if (isDone) this.#sumsDueMs = isMore ? 0 : performance.now() + SUM_INTERVAL_MS
    return isDone
  }

  #retain(): boolean {
    let isMore = true
    const isDone = this.#attempt(() => {
      isMore = this.#parts.retention.step()
    })
    this.#retentionDueMs = isMore ? performance.now() + RETENTION_PAUSE_MS : Number.POSITIVE_INFINITY
    return isDone
  }

  /** Does what the disk may refuse. Gives false, after a while, if it did; then it is to be tried again. */
  #attempt(work: () => void): boolean {
    try {
      work()
      if (this.#isBlocked) this.#tell({ kind: 'unblocked' })
      this.#isBlocked = false
      return true
    } catch (cause) {
      if (!this.#isBlocked) this.#tell({ kind: 'blocked', message: describeFailure(cause), cause: String(cause) })
      this.#isBlocked = true
      Atomics.wait(this.#words, WORD.closing, Atomics.load(this.#words, WORD.closing), RETRY_MS)
      return false
    }
  }

  #sleep(signal: number): void {
    const { rowsToSum } = this.#parts.writer
    const dueMs = Math.min(rowsToSum > 0 ? this.#sumsDueMs : Number.POSITIVE_INFINITY, this.#retentionDueMs)
    Atomics.store(this.#words, WORD.idle, 1)
    Atomics.wait(this.#words, WORD.signal, signal, Math.max(0, dueMs - performance.now()))
    Atomics.store(this.#words, WORD.idle, 0)
  }

  #receive(): void {
    this.#mail = Atomics.load(this.#words, WORD.mail)
    for (let parcel = this.#nextMail(); parcel !== undefined; parcel = this.#nextMail()) {
      if (parcel.kind === 'revision') this.#parts.writer.addRevision(parcel.revision)
      else {
        this.#parts.retention.beforeMs = parcel.beforeMs
        this.#retentionDueMs = 0
      }
    }
  }

  #nextMail(): ToWriter | undefined {
    return receiveMessageOnPort(this.#parts.port)?.message as ToWriter | undefined
  }

  #tell(message: FromWriter): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is for windows
    this.#parts.port.postMessage(message)
  }
}
