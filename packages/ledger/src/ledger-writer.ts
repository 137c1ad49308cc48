import { CarpoolError, monotonicClock, type BackgroundUsage, type InvocationRecord } from '@carpool/core'
import type { LedgerProblem } from './ledger-types.ts'
import { restartDelayMs } from './restart-delay.ts'
import { RevisionDictionary } from './revision-dictionary.ts'
import { RingFiller } from './ring-filler.ts'
import { encodeInvocation, SLOT_LENGTH } from './slots.ts'
import type { Thread } from './thread.ts'
import { isInvocation, WriteQueue, type Entry } from './write-queue.ts'
import { startWriterThread, type ReadyThread } from './writer-handle.ts'
import type { FromWriter, ToWriter, WriterReady } from './writer-messages.ts'

/** Longest time that a write waits. */
const WRITE_TIMEOUT_MS = 2000
const WATCH_INTERVAL_MS = 250
const CLOSE_TIMEOUT_MS = 5000
/** Most entries kept in memory while they cannot be written. */
const MAX_QUEUED = 100_000

export interface LedgerWriterOptions {
  readonly onProblem: (problem: LedgerProblem) => void
  readonly underWay?: () => number
  readonly onCommitted: (entries: readonly Entry[]) => void
}

/** Writes through a thread, which is started again if it dies, and keeps every entry until it is committed. */
export class LedgerWriter {
  readonly #path: string
  readonly #options: LedgerWriterOptions
  readonly #queue: WriteQueue
  readonly #dictionary: RevisionDictionary
  readonly #ran: Set<string>
  readonly #watch: NodeJS.Timeout
  readonly #closed = Promise.withResolvers<void>()
  /** A place to try out entries that wait for a ring. */
  readonly #scratch = new Float64Array(SLOT_LENGTH)
  readonly #scratchBytes = new Uint8Array(this.#scratch.buffer)
  /** Absent until the thread is ready. */
  #ring: RingFiller | undefined
  #thread: Thread<ToWriter> | undefined
  /** Threads that ended in a row without a commit between them. */
  #failures = 0
  #restartTimer: NodeJS.Timeout | undefined
  #retentionBeforeMs: number | undefined
  #blocked: string | undefined
  #isLate = false
  #isClosing = false
  #hasGivenUp = false

  /** @throws CarpoolError `data-unusable` */
  static async open(path: string, options: LedgerWriterOptions): Promise<{ writer: LedgerWriter; isChecked: boolean }> {
    const opening = Promise.withResolvers<{ writer: LedgerWriter; isChecked: boolean }>()
    let writer: LedgerWriter | undefined
    startWriterThread(path, {
      onReady: (started) => {
        writer = new LedgerWriter(path, options, started.ready)
        writer.#attach(started)
        opening.resolve({ writer, isChecked: started.ready.isChecked })
      },
      onMessage: (message) => {
        if (message.kind === 'unusable') opening.reject(new CarpoolError('data-unusable', message.message))
        else if (writer !== undefined) writer.#receive(message)
      },
      onEnd: (cause) => {
        if (writer !== undefined) writer.#ended(cause)
        opening.reject(new CarpoolError('internal', 'The thread that writes the ledger does not start.', { cause }))
      },
    })
    return opening.promise
  }

  private constructor(path: string, options: LedgerWriterOptions, { lastSequence, revisions, ran }: WriterReady) {
    this.#path = path
    this.#options = options
    this.#ran = new Set(ran)
    this.#queue = new WriteQueue(lastSequence + 1, options.onCommitted)
    this.#dictionary = new RevisionDictionary(revisions, (revision) => this.#post({ kind: 'revision', revision }))
    this.#watch = setInterval(() => this.#lookAfterLate(), WATCH_INTERVAL_MS).unref()
  }

  get unavailable(): string | undefined {
    return (
      this.#blocked ?? (this.#isLate ? 'The disk of the data folder does not take the rows of the ledger in time.' : undefined)
    )
  }

  hasRun(revision: string): boolean {
    return this.#ran.has(revision)
  }

  /** @throws CarpoolError `ledger-unavailable` */
  write(record: InvocationRecord, instanceUs: number): Promise<void> {
    if (record.outcome !== 'refused') this.#ran.add(record.revision)
    const refusal = this.#enqueue(record, instanceUs)
    return refusal === undefined ? this.#queue.waitForLatest() : Promise.reject(refusal)
  }

  writeBackground(usage: BackgroundUsage): void {
    this.#enqueue(usage, 0)
  }

  /** Rows of hours that ended before this may go. */
  retain(beforeMs: number): void {
    this.#retentionBeforeMs = beforeMs
    this.#post({ kind: 'retention', beforeMs })
  }

  close(): Promise<void> {
    if (this.#isClosing) return this.#closed.promise
    this.#isClosing = true
    if (this.#thread === undefined) {
      if (this.#queue.size > 0) this.#restart()
      else this.#finish()
    }
    this.#closeRing()
    const timer = setTimeout(() => this.#giveUp(), CLOSE_TIMEOUT_MS)
    return this.#closed.promise.finally(() => clearTimeout(timer))
  }

  #enqueue(entry: Entry, instanceUs: number): CarpoolError | undefined {
    if (this.#isClosing) return this.#lose(entry, 'A record came after the ledger was closed.')
    if (this.#queue.size >= MAX_QUEUED) return this.#lose(entry, `More than ${MAX_QUEUED} records wait for the ledger.`)
    const ring = this.#ring
    if (ring?.isBatchBegun() === true) this.#queue.split()
    const isSound =
      ring !== undefined && ring.nextSequence === this.#queue.nextSequence && ring.hasRoom
        ? ring.put(entry, instanceUs)
        : !isInvocation(entry) || encodeInvocation(this.#scratch, this.#scratchBytes, 0, entry, instanceUs)
    if (!isSound)
      return this.#lose(entry, 'A record has an id that is no UUID, or a word that the ledger does not know.', 'internal')
    this.#queue.add(entry, instanceUs, monotonicClock)
    if (this.#options.underWay?.() === 0) ring?.hurry()
    return undefined
  }

  #lose(entry: Entry, message: string, code: 'ledger-unavailable' | 'internal' = 'ledger-unavailable'): CarpoolError {
    this.#options.onProblem({ message, lost: [entry] })
    return new CarpoolError(code, 'The invocation could not be recorded.')
  }

  /** Fills the ring with what waits for room. */
  #fillRing(): void {
    const ring = this.#ring
    if (ring === undefined) return
    while (ring.nextSequence < this.#queue.nextSequence && ring.hasRoom) {
      const queued = this.#queue.at(ring.nextSequence)
      if (queued === undefined || !ring.put(queued.entry, queued.instanceUs)) return
    }
  }

  #receive(message: Exclude<FromWriter, WriterReady>): void {
    if (message.kind === 'committed') this.#takeCommits()
    else if (message.kind === 'blocked') this.#block(message.message, message.cause)
    else if (message.kind === 'unusable') this.#block(message.message, undefined)
    else this.#unblock()
  }

  #takeCommits(): void {
    if (this.#ring === undefined) return
    this.#failures = 0
    this.#isLate = false
    this.#queue.commit(this.#ring.committedSequence())
    this.#fillRing()
    if (this.#isClosing) this.#closeRing()
  }

  #block(message: string, cause: unknown): void {
    if (this.#blocked === message) return
    this.#blocked = message
    this.#options.onProblem({ message, cause })
  }

  #unblock(): void {
    if (this.#blocked === undefined) return
    this.#blocked = undefined
    this.#options.onProblem({ message: 'The ledger is written again.' })
  }

  #lookAfterLate(): void {
    // If this thread was held up, commits may not have been taken notice of.
    if (this.#ring !== undefined) this.#queue.commit(this.#ring.committedSequence())
    const lateMs = monotonicClock() - WRITE_TIMEOUT_MS
    this.#isLate = this.#queue.oldestMs !== undefined && this.#queue.oldestMs <= lateMs
    this.#queue.rejectOlderThan(lateMs, notRecorded)
  }

  #post(message: ToWriter): void {
    // Without a thread it is told when one is ready.
    if (this.#ring === undefined) return
    this.#thread?.post(message)
    this.#ring.announceMail()
  }

  /** Lets a thread that has opened the file begin where the one before ended. */
  #attach({ thread, memory, ready }: ReadyThread): void {
    // The thread before may have committed more than it could tell.
    this.#queue.commit(ready.lastSequence)
    this.#thread = thread
    this.#ring = new RingFiller(memory, Math.max(ready.lastSequence + 1, this.#queue.firstSequence), this.#dictionary)
    const known = new Set(ready.revisions.map(({ key }) => key))
    for (const revision of this.#dictionary.rows) if (!known.has(revision.key)) this.#post({ kind: 'revision', revision })
    if (this.#retentionBeforeMs !== undefined) this.#post({ kind: 'retention', beforeMs: this.#retentionBeforeMs })
    this.#fillRing()
    if (this.#isClosing) this.#closeRing()
  }

  #ended(cause: unknown): void {
    if (this.#ring !== undefined) this.#queue.commit(this.#ring.committedSequence())
    this.#ring = undefined
    this.#thread = undefined
    if (this.#hasGivenUp || (this.#isClosing && this.#queue.size === 0)) {
      this.#finish()
      return
    }
    this.#failures += 1
    if (cause !== undefined) this.#block('The thread that writes the ledger ended; it is started again.', cause)
    this.#restartTimer = setTimeout(() => this.#restart(), restartDelayMs(this.#failures))
  }

  #restart(): void {
    clearTimeout(this.#restartTimer)
    this.#thread = startWriterThread(this.#path, {
      onReady: (started) => {
        this.#attach(started)
        this.#unblock()
      },
      onMessage: (message) => this.#receive(message),
      onEnd: (cause) => this.#ended(cause),
    })
  }

  /** Lets the thread end once it has everything. */
  #closeRing(): void {
    if (this.#ring?.nextSequence === this.#queue.nextSequence) this.#ring.close()
  }

  #giveUp(): void {
    this.#hasGivenUp = true
    if (this.#thread === undefined) this.#finish()
    else void this.#thread.terminate()
  }

  #finish(): void {
    clearInterval(this.#watch)
    clearTimeout(this.#restartTimer)
    const lost = this.#queue.abandon(notRecorded)
    if (lost.length > 0) {
      this.#options.onProblem({ message: `${lost.length} records could not be written to the ledger before the end.`, lost })
    }
    this.#closed.resolve()
  }
}

function notRecorded(): CarpoolError {
  return new CarpoolError('ledger-unavailable', `The invocation could not be recorded within ${WRITE_TIMEOUT_MS / 1000} s.`)
}
