import type { Holder } from '@carpool/core'
import type { RunDelayHistogram } from '@carpool/wire'
import type { Account } from '../accounting/account.ts'
import type { Measured } from '../isolates/guest-isolate.ts'
import { Batch, BatchCost, BatchSize, type Entry } from './batch.ts'
import type { Permit, PermitRequest } from './permits.ts'
import type { RunScheduler } from './run-scheduler.ts'
import { WaitingEntries } from './waiting-entries.ts'

/** What the queue needs of an isolate. */
export interface EnteredIsolate {
  readonly disposed: boolean
  /** @returns how many entries of the batch have begun; their CPU times, in ns, are in `entryCpuNs` then */
  readEntryCpu(): number
  readonly entryCpuNs: ArrayLike<number>
  /** Most memory that it ever held, in bytes, as of the last read. */
  readonly peakBytes: number
  /** A batch is about to begin in which {@link enter} is not called. */
  resetEntryCpu(): void
  /** Adds an entry to those that go in next. */
  push(op: number, number: number, text: string, kind: number, body: string): void
  /**
   * They go in, as one batch. Whoever owns the queue calls {@link EntryQueue.batchDone} when all have run, or the isolate is
   * gone.
   */
  enter(): void
  /** Does a task that enters the isolate. All since the reset are one entry, the only one that is measured. */
  measure<T>(task: () => Promise<T>): Promise<T>
}

/** The guest that the queue is of. Called on the host's loop. */
export interface BatchListener {
  /** Whose share of the CPU its entries take from. */
  readonly holder: Holder
  /** Before the isolate is entered. */
  batchBegan(batch: Batch): void
  /** After the isolate was left, or is gone, and before anything is charged. */
  readMessages(): void
  /** After the isolate was left, and the batch is charged. */
  batchEnded(batch: Batch): void
  /**
   * Instead: the isolate was disposed in the middle of the batch, by us or by V8. The batch is charged only as far as it was
   * early.
   */
  batchLost(batch: Batch): void
  /** The first entry of an invocation has run, after the batch is charged: without an answer by now, the invocation waits. */
  entryRan(invocation: number): void
}

/** What the queue needs of the host's scheduler. */
export interface PermitSource extends Pick<RunScheduler<never>, 'request'> {
  readonly runDelay: Pick<RunDelayHistogram, 'add'>
  readonly sharedDelay: Pick<RunDelayHistogram, 'add'>
}

/** Waits until what it has used is charged. */
export interface Charged {
  /** Its entry runs on for a client that has left. It waits for the end of that, which is on its bill too. */
  readonly runsOn: boolean
  charged(): void
}

const NO_ENTRIES: readonly Entry[] = []

/** See {@link EntryQueue.runAlone}. */
interface WorkAlone {
  begin(): Promise<void>
  readonly behind: Entry | undefined
}

/**
 * The entries of one guest: those that wait go in together as a batch, when the host's scheduler gives a permit. When all have
 * run, each is charged what it used. Entries that come meanwhile wait for the next batch.
 */
export class EntryQueue {
  /** What its batches take: that of its function, once it is known which one that is. */
  cost = new BatchCost()
  readonly #isolate: EnteredIsolate
  readonly #listener: BatchListener
  readonly #scheduler: PermitSource
  readonly #request: PermitRequest & { costMs: number }
  readonly #size = new BatchSize()
  readonly #alone: WorkAlone[] = []
  readonly #waiting: WaitingEntries
  #batch: Batch | undefined
  #lastRun: Account | undefined
  /** Those of the batch. */
  #entries = NO_ENTRIES
  #hasRequested = false
  #isNextDue = false
  readonly #nextOfTurn = (): void => {
    this.#isNextDue = false
    this.#next()
  }
  #requestedAtMs = 0
  #permit: Permit | undefined
  #afterCharge: Charged[] = []

  /** @param background what background work is charged to */
  constructor(isolate: EnteredIsolate, listener: BatchListener, scheduler: PermitSource, background?: Account) {
    this.#isolate = isolate
    this.#listener = listener
    this.#scheduler = scheduler
    this.#waiting = new WaitingEntries(background)
    this.#request = { guest: listener, costMs: 0, begin: (permit) => this.#permitted(permit) }
  }

  /** The batch that runs. */
  get batch(): Batch | undefined {
    return this.#batch
  }

  /** The account whose entry ran last in a batch that has ended. */
  get lastRun(): Account | undefined {
    return this.#lastRun
  }

  push(entry: Entry): void {
    this.#waiting.push(entry)
    this.#next()
  }

  /**
   * The same at the end of what runs now in the event loop: what comes in the same frame goes in as one batch.
   * @param behind an entry that it must not overtake; default: background work behind all others
   */
  pushSoon(entry: Entry, behind?: Entry): void {
    this.#waiting.push(entry, behind)
    if (this.#isNextDue || this.#batch !== undefined) return
    this.#isNextDue = true
    queueMicrotask(this.#nextOfTurn)
  }

  /** Accounts of invocations whose first entry has not gone in yet. */
  get notStarted(): Set<Account> {
    return this.#waiting.notStarted
  }

  /** Accounts whose entries wait to go on with what has begun. */
  get resuming(): Set<Account> {
    return this.#waiting.resuming
  }

  /** Since when the first entry waits that is no background work, on the monotonic clock, in ms; undefined if none does. */
  get waitsSinceMs(): number | undefined {
    return this.#waiting.sinceMs
  }

  /** Takes the first entry of an invocation out again. @returns whether it was still waiting */
  remove(invocation: number): boolean {
    return this.#waiting.remove(invocation)
  }

  /** Lets others in beside the batch that runs, whose first slice is over. */
  releasePermit(): void {
    this.#permit?.release((this.#batch?.totalNs ?? 0) / 1e6)
  }

  /**
   * Runs work that enters the isolate by other means, as a batch of its own, before the entries that wait. Settles when it is
   * charged, with what the work settled with; never if the isolate is gone before that begins.
   * @param work gives each task that enters the isolate to `measured`
   * @param behind an entry that waits in this queue, and goes in before it and before work that is given later; default: none
   */
  runAlone<T>(account: Account, work: (measured: Measured) => Promise<T>, behind?: Entry): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const begin = async (): Promise<void> => {
      this.#isolate.resetEntryCpu()
      const batch = this.#begin([account])
      const [settled] = await Promise.allSettled([(async () => work((task) => this.#isolate.measure(task)))()])
      this.#leave(batch)
      this.#finish(batch)
      if (settled.status === 'fulfilled') resolve(settled.value)
      else reject(settled.reason)
    }
    this.#alone.push({ begin, behind })
    this.#next()
    return promise
  }

  /** Calls back when what runs now is charged, all of it or early: at once if nothing runs, or the isolate was disposed. */
  whenCharged(waiting: Charged): void {
    if (this.#batch === undefined || this.#batch.isEnded) waiting.charged()
    else this.#afterCharge.push(waiting)
  }

  /** Whether {@link whenCharged} has callers that need not wait for the end of the batch. */
  get hasWaiters(): boolean {
    return this.#afterCharge.some(endsEarly)
  }

  /** Charges the batch as far as it is measured. */
  charge(): void {
    this.#batch?.charge()
  }

  /** The same, and calls back those that need not wait for the end of the batch. */
  chargeEarly(): void {
    if (this.#batch === undefined) return
    this.#batch.charge()
    const waiting = this.#afterCharge
    this.#afterCharge = waiting.filter(({ runsOn }) => runsOn)
    for (const one of waiting) if (!this.#afterCharge.includes(one)) one.charged()
  }

  /** To be called once for each `enter`, on the host's loop: all entries of the batch have run, or the isolate is gone. */
  batchDone(): void {
    const [batch, entries] = [this.#batch, this.#entries]
    if (batch === undefined) return
    const ranMs = performance.now() - batch.beganAtMs
    this.#leave(batch)
    this.#lastRun = batch.current
    const { totalNs } = batch
    this.#size.record(totalNs, entries.length)
    this.#waiting.record(totalNs)
    // Background work is meant to wait.
    if (this.#waiting.isForeground) this.#recordDelays(batch, entries, ranMs)
    this.#finish(batch)
  }

  #next(): void {
    if (this.#batch !== undefined || this.#hasRequested || !this.#hasWork) return
    this.#hasRequested = true
    this.#requestedAtMs = performance.now()
    this.#request.costMs = this.cost.usualMs
    this.#scheduler.request(this.#request)
  }

  #permitted(permit: Permit): void {
    this.#hasRequested = false
    this.#permit = permit
    if (this.#hasWork) this.#enter()
    else permit.release(0)
  }

  get #hasWork(): boolean {
    return (this.#alone.length > 0 || !this.#waiting.isEmpty) && !this.#isolate.disposed
  }

  #enter(): void {
    const alone = this.#alone[0]
    if (alone !== undefined && alone.behind?.hasGoneIn !== false) {
      this.#alone.shift()
      return void alone.begin()
    }
    const entries = this.#waiting.take(this.#size.max)
    const accounts: Account[] = []
    for (const entry of entries) {
      const { account, op, number, text, kind, body } = entry
      accounts.push(account)
      entry.goesIn()
      this.#isolate.push(op, number, text, kind, body)
    }
    this.#entries = entries
    this.#begin(accounts)
    this.#isolate.enter()
  }

  #recordDelays(batch: Batch, entries: readonly Entry[], ranMs: number): void {
    // While it runs, an entry waits for nothing but a core.
    const offCoreMs = batch.wasBlocked ? 0 : Math.max(0, ranMs - batch.totalNs / 1e6)
    this.#scheduler.sharedDelay.add((batch.beganAtMs - this.#requestedAtMs + offCoreMs) * 1000)
    let waitMs = offCoreMs
    // What was lost with its isolate has been begun again elsewhere.
    const hasRun = !this.#isolate.disposed
    for (let index = 0; index < entries.length; index++) {
      const entry = entries[index]!
      this.#scheduler.runDelay.add((batch.beganAtMs - entry.readyAtMs + waitMs) * 1000)
      waitMs += batch.usedNs[index]! / 1e6
      if (entry.isFirst && hasRun) this.#listener.entryRan(entry.number)
    }
  }

  #begin(accounts: readonly Account[]): Batch {
    const batch = new Batch(accounts, performance.now(), this.#listener.holder)
    this.#batch = batch
    this.#listener.batchBegan(batch)
    return batch
  }

  #leave(batch: Batch): void {
    this.#listener.readMessages()
    if (this.#isolate.disposed) return this.#listener.batchLost(batch)
    batch.measured(this.#isolate.entryCpuNs, this.#isolate.readEntryCpu())
    batch.peakBytes = this.#isolate.peakBytes
    batch.charge()
    this.#listener.batchEnded(batch)
  }

  #finish(batch: Batch): void {
    const usedMs = batch.totalNs / 1e6
    this.cost.record(usedMs)
    this.#batch = undefined
    this.#entries = NO_ENTRIES
    this.#callBackCharged()
    // Others that wait for a permit may go first.
    this.#permit?.release(usedMs)
    this.#next()
  }

  #callBackCharged(): void {
    if (this.#afterCharge.length === 0) return
    const waiting = this.#afterCharge
    this.#afterCharge = []
    for (const one of waiting) one.charged()
  }
}

function endsEarly({ runsOn }: Charged): boolean {
  return !runsOn
}
