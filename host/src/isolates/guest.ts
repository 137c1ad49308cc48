import { randomUUIDv7 } from 'node:crypto'
import { NOBODY, resolveLimits, type FunctionLimits, type HandlerForm, type Holder } from '@carpool/core'
import {
  BODY_KINDS,
  ENTRIES,
  NO_INVOCATION,
  type BodyKind,
  type GuestOptions,
  type InvokeHead,
  type LoadReport,
} from '@carpool/runtime/bridge'
import { Account } from '../accounting/account.ts'
import { BackgroundBudget } from '../accounting/background-budget.ts'
import type { Stream } from '../calls/streams.ts'
import type { LogThrottle, LogThrottles } from '../limits/log-throttle.ts'
import { MemoryWatch } from '../limits/memory.ts'
import { Entry, type Batch } from '../scheduler/batch.ts'
import { EntryQueue, type BatchListener } from '../scheduler/entry-queue.ts'
import type { Runnable, RunScheduler } from '../scheduler/run-scheduler.ts'
import { LoadFailure } from './code-store.ts'
import { callbacksOf, messageHandler, type BridgedGuest, type GuestCalls, type Relay } from './guest-bridge.ts'
import { GuestIsolate, type GuestCode, type GuestIsolateOptions, type Measured, type OnMessage } from './guest-isolate.ts'
import type { Poolable } from './isolate-pool.ts'
import { TimerTable } from './timer-table.ts'

/** The calls of the host, as guests report entries and messages to them. */
export interface EnteredCalls extends GuestCalls<Guest> {
  /** The account of an invocation; undefined if the guest runs no invocation of that number (any more). */
  accountOf(guest: Guest, invocation: number): Account | undefined
  /** The first entry of an invocation has run. */
  entryRan(invocation: number): void
  /** Called after a batch was charged: ends invocations that have used more than their CPU limit. */
  endOverCpuLimit(guest: Guest, batch: Batch): void
}

/** Ends guests at their limits. */
export interface GuestWatchdog {
  /** The isolate was disposed in the middle of this batch, by V8 or by us, and its thread has left it. */
  batchLost(guest: Guest, batch: Batch): void
  /** V8 ended the isolate while nothing ran in it. */
  lostWhileIdle(guest: Guest): void
  /** V8 gave up on the isolate, and parked its thread for good. */
  gaveUp(guest: Guest): void
  /** It is near a limit: calls that come from now on get another isolate. */
  retire(guest: Guest): void
}

/** The parts of the host that a guest turns to. */
export interface GuestHost {
  readonly calls: EnteredCalls
  readonly watchdog: GuestWatchdog
  readonly scheduler: RunScheduler<Guest>
  readonly logs: LogThrottles
  /** The isolate of a revision has taken much memory. */
  readonly onGrown: (revision: string, heldBytes: number) => void
  /** V8 gave up on an isolate before there was a guest in it: the process must end. */
  readonly onCatastrophe: (reason: string) => void
}

/**
 * Longest time that a module scope may take, whatever the limit of invocations, in ms: a deploy waits for it, and others behind
 * that.
 */
const START_WALL_MAX_MS = 60_000
/** What V8 does on its own is charged when it comes to this much, in ns: the ledger gets a row each time. */
const MIN_BETWEEN_NS = 10_000_000

/** An isolate with the guest runtime in it: first blank, then, once loaded, one revision of a function. */
export class Guest implements Poolable, BatchListener, BridgedGuest, Runnable {
  /** What its background work is charged to. */
  readonly background = new Account()
  /**
   * What is for no call alone: entries of its sockets, while it runs calls and it is not known for which, and what V8 does
   * between batches. None of its calls is to pay for the others.
   */
  readonly shared = new Account()
  readonly backgroundBudget = new BackgroundBudget()
  /** What its start is charged to, until it is loaded. */
  readonly start = new Account()
  /** Fetches that the guest waits for; the fetch table counts them. */
  openFetches = 0
  /** Those of its calls, fetches and sockets. */
  readonly streams = new Map<number, Stream>()
  /** Its open sockets: numbers on the connection by its own. */
  readonly sockets = new Map<number, number>()
  /** Whether it ever had one. */
  hadSockets = false
  /** Invocations in it that have not ended. */
  callsUnderWay = 0
  /** Invocations that ever entered it. */
  invocations = 0
  readonly isolate: GuestIsolate
  readonly queue: EntryQueue
  readonly timers: TimerTable
  readonly #relay: Relay<Guest>
  readonly #onMessage: OnMessage
  readonly #host: GuestHost
  readonly #memory = new MemoryWatch()
  /** CPU time of what V8 did on its own, in ns; and what of it is charged. */
  #betweenNs = 0
  #betweenChargedNs = 0
  #revision = ''
  #holder: Holder = NOBODY
  #logs: LogThrottle | undefined
  #isLoaded = false
  #isOver = false
  /** CPU time of all batches that have ended, in ns. */
  #entriesNs = 0
  #heapBytes = 0
  #loadBatch: Promise<void> | undefined
  #endLoad: ((failure: LoadFailure) => void) | undefined
  #onDisposed = (): void => {}
  #isCached = false
  #form: HandlerForm = 'fetch'
  #limits = resolveLimits({})

  private constructor(isolate: GuestIsolate, relay: Relay<Guest>, host: GuestHost) {
    this.isolate = isolate
    this.#relay = relay
    this.#host = host
    this.#onMessage = messageHandler(this, relay, host.calls)
    // The calls that wait for it have given theirs back.
    this.shared.hasReturnedSlot = true
    this.timers = new TimerTable((timer, account) => this.queue.pushSoon(new Entry(account, ENTRIES.fireTimer, timer)))
    this.queue = new EntryQueue(isolate, this, host.scheduler, this.background)
    isolate.listen({
      batchDone: () => this.queue.batchDone(),
      messagesWait: () => this.#messagesWait(),
      grown: () => this.#grown(),
    })
  }

  /** Makes an isolate with the runtime booted in it. */
  static async blank(
    options: Pick<GuestIsolateOptions, 'bootstrap' | 'memoryLimitMb' | 'isTrimmed'>,
    host: GuestHost,
  ): Promise<Guest> {
    const relay: Relay<Guest> = { guest: undefined, onLoaded: undefined }
    const isolate = await GuestIsolate.create({
      ...options,
      callbacks: callbacksOf(relay),
      onCatastrophe: (reason) => {
        const { guest } = relay
        if (guest === undefined || guest.revision === '') host.onCatastrophe(reason)
        else host.watchdog.gaveUp(guest)
      },
    })
    const guest = new Guest(isolate, relay, host)
    relay.guest = guest
    return guest
  }

  get revision(): string {
    return this.#revision
  }

  /** Whose shares it takes from. */
  get holder(): Holder {
    return this.#holder
  }

  get form(): HandlerForm {
    return this.#form
  }

  get disposed(): boolean {
    return this.isolate.disposed
  }

  /** Whether nothing of it is left: it is disposed, and its thread has taken it down. */
  get isReleased(): boolean {
    return this.isolate.isReleased
  }

  /** Whether its module scope has run. */
  get isLoaded(): boolean {
    return this.#isLoaded
  }

  /** Whether it was loaded with a code cache that V8 took. */
  get isCached(): boolean {
    return this.#isCached
  }

  get limits(): FunctionLimits {
    return this.#limits
  }

  /** What it took to make the isolate, in ns, by the isolate's own clock. */
  get bootNs(): number {
    return this.isolate.bootNs
  }

  /** CPU time of all batches that have ended, and of what V8 did on its own, in ns. */
  get totalNs(): number {
    return this.#entriesNs + this.#betweenNs
  }

  /** Acts on its messages since the last read. */
  readMessages(): void {
    this.isolate.readMessages(this.#onMessage)
  }

  measure(batch: Batch): void {
    batch.measured(this.isolate.entryCpuNs, this.isolate.readEntryCpu())
    this.#memory.saw(this.isolate.peakBytes)
  }

  batchBegan(batch: Batch): void {
    this.#host.scheduler.began(this, batch)
  }

  batchEnded(batch: Batch): void {
    this.isolate.clearAffinity()
    this.isolate.resetTurns()
    this.#memory.saw(batch.peakBytes)
    this.#entriesNs += batch.totalNs
    this.#lookBetween(0)
    this.#host.scheduler.ended(this, batch)
    this.#host.calls.endOverCpuLimit(this, batch)
    if (this.#memory.isDue(batch.totalNs, performance.now())) this.#measureMemory()
  }

  /**
   * What V8 did on its own takes from the share of the function like its entries, and from the budget of background work.
   * @param runningNs what is charged of a batch that runs
   */
  #lookBetween(runningNs: number): void {
    const ns = this.isolate.takeBetweenNs()
    if (ns === 0) return
    this.#betweenNs += ns
    this.#host.scheduler.used(this.#holder, ns / 1e6)
    this.backgroundBudget.between(ns, this.#entriesNs + runningNs, this.background.everNs)
  }

  /** Charges what V8 did on its own, once it is worth it. The batch that runs must be charged as far as it is measured. */
  chargeBetween(): void {
    if (this.#revision === '') return
    this.#lookBetween(this.batch?.totalNs ?? 0)
    const dueNs = this.#betweenNs - this.#betweenChargedNs
    if (dueNs < MIN_BETWEEN_NS && !this.isReleased) return
    this.shared.charge(dueNs)
    this.#betweenChargedNs = this.#betweenNs
  }

  batchLost(batch: Batch): void {
    this.isolate.clearAffinity()
    this.isolate.resetTurns()
    this.#host.watchdog.batchLost(this, batch)
    this.#host.scheduler.ended(this, batch)
  }

  entryRan(invocation: number): void {
    this.#host.calls.entryRan(invocation)
  }

  /** CPU time of all entries of the running batch, in ns; that of its thread, if the isolate was disposed. */
  get usedNs(): number {
    const count = this.isolate.readEntryCpu()
    let sum = 0
    for (let index = 0; index < count; index++) sum += this.isolate.entryCpuNs[index]!
    return sum
  }

  /** What the measurements of its memory are charged to. */
  get memoryAccount(): Account {
    return this.#memory.account
  }

  /** Whether it was disposed by us, or V8's end of it was dealt with: of its messages, only the log counts from then on. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Largest heap that was measured, in KiB. */
  get memoryPeakKb(): number {
    return this.#memory.peakKb
  }

  /** The same in bytes. */
  get heapBytes(): number {
    return this.memoryPeakKb * 1024
  }

  /** The heap as it was measured last, in bytes. */
  get lastHeapBytes(): number {
    return this.#heapBytes
  }

  get batch(): Batch | undefined {
    return this.queue.batch
  }

  get hasBackgroundWork(): boolean {
    return this.timers.size > 0 || this.openFetches > 0
  }

  get logs(): LogThrottle {
    return (this.#logs ??= this.#host.logs.of(this.#revision, this.#holder))
  }

  /**
   * Runs the module scope of a revision, within its wall limit.
   * @param owner of the function
   * @throws LoadFailure
   */
  async load(code: GuestCode, options: GuestOptions, owner: string): Promise<void> {
    // The garbage of booting is not the function's.
    this.isolate.takeBetweenNs()
    this.#revision = options.revision
    this.#holder = { owner, functionName: options.functionName }
    this.#limits = options.limits
    this.#memory.limitBytes = options.limits.memoryMb * 1024 * 1024
    try {
      const ended = new Promise<never>((_, reject) => (this.#endLoad = reject))
      ended.catch(() => {})
      const report = await Promise.race([this.#untilLoaded(code, options), ended])
      // To its end: what comes after the report may go on, and is the start's as well.
      await Promise.race([this.#loadBatch, ended])
      if (!report.ok) throw new LoadFailure(report.message, { code: report.code, guestStack: report.stack })
      this.#form = report.form
      if (this.disposed) throw new LoadFailure('The isolate was lost while the function loaded.', { outcome: 'isolate-lost' })
      this.#isLoaded = true
      this.#measureMemory()
    } catch (cause) {
      this.queue.chargeEarly()
      this.dispose()
      throw cause
    } finally {
      this.#relay.onLoaded = undefined
      this.#endLoad = undefined
    }
  }

  reachedMemoryLimit(): void {
    this.#memory.record(this.#limits.memoryMb * 1024 * 1024, performance.now())
  }

  #grown(): void {
    if (this.#revision !== '') this.#host.onGrown(this.#revision, this.isolate.heldBytes)
  }

  #messagesWait(): void {
    this.readMessages()
    if (this.disposed && !this.#isOver && this.batch === undefined) this.#host.watchdog.lostWhileIdle(this)
  }

  /** Gives up on a module scope that is still running, or has lost its isolate. */
  endLoad(failure: LoadFailure): void {
    this.#endLoad?.(failure)
  }

  invoke(account: Account, invocation: number, head: string, kind: BodyKind, body: string): void {
    this.invocations++
    this.queue.pushSoon(new Entry(account, ENTRIES.invoke, invocation, head, BODY_KINDS.indexOf(kind), body))
  }

  /**
   * The invocation has ended, so what its end brings about is background work. What had not gone in yet does not go in at all.
   */
  cancel(invocation: number): void {
    if (this.queue.remove(invocation)) return
    // Before what it has brought about, as the end of a fetch, or the guest would try that again.
    this.queue.push(new Entry(this.background, ENTRIES.cancel, invocation))
  }

  /** @param stream of its body, if that has streamed so far */
  settleFetch(account: Account, fetch: number, result: string, kind: BodyKind, body: string, stream?: Stream): void {
    const entry = new Entry(account, ENTRIES.settleFetch, fetch, result, BODY_KINDS.indexOf(kind), body)
    if (stream === undefined) this.queue.pushSoon(entry)
    else stream.push(entry)
  }

  /** The response of a fetch has come, but for its body. */
  fetchHead(account: Account, fetch: number, head: string, stream: Stream): void {
    stream.push(new Entry(account, ENTRIES.fetchHead, fetch, head))
  }

  socketConnected(account: Account, socket: number, connected: string, stream: Stream): void {
    stream.push(new Entry(account, ENTRIES.socketConnected, socket, connected))
  }

  socketClosed(account: Account, socket: number, end: string, stream: Stream): void {
    stream.push(new Entry(account, ENTRIES.socketClosed, socket, end))
  }

  /** What the work of an invocation, or of the module scope, is charged to. */
  accountOf(invocation: number): Account {
    return this.#host.calls.accountOf(this, invocation) ?? (this.#isLoaded ? this.background : this.start)
  }

  /**
   * Calls the handler, so that V8 compiles what it runs. Nobody hears of that, nor of what the guest does from then on.
   * @returns the entry that does so
   */
  rehearse(): Entry {
    const head: InvokeHead = {
      invocationId: randomUUIDv7(),
      method: 'GET',
      url: 'http://localhost/',
      headers: [
        ['host', 'localhost'],
        ['accept', '*/*'],
        ['x-forwarded-prefix', `/${this.#holder.functionName}`],
      ],
      clientIp: '127.0.0.1',
    }
    const entry = new Entry(new Account(), ENTRIES.rehearse, NO_INVOCATION, JSON.stringify(head))
    this.queue.push(entry)
    return entry
  }

  /**
   * V8's code cache of its code, with what the module scope has run, and whatever came after that.
   * @param behind an entry that goes in before it; default: none
   * @throws Error if the isolate is gone
   */
  async makeCodeCache(code: GuestCode, behind?: Entry): Promise<Uint8Array | undefined> {
    const disposed = new Promise<never>((_, reject) => {
      this.#onDisposed = () => reject(new Error('The isolate is gone.'))
    })
    const make = (): Promise<Uint8Array | undefined> => this.isolate.makeCodeCache(code)
    const made = this.queue.runAlone(new Account(), (measured) => measured(make), behind)
    return Promise.race([made, disposed])
  }

  dispose(): void {
    this.#isOver = true
    this.#onDisposed()
    this.timers.clear()
    this.#logs?.close()
    this.isolate.dispose()
  }

  #measureMemory(): void {
    this.queue
      .runAlone(this.#memory.account, async (measured) => {
        const bytes = await measured(() => this.isolate.heapBytes())
        this.#memory.saw(bytes)
        if (!this.#memory.isNear(bytes) || !this.#memory.mayCollect(this.#entriesNs)) return bytes
        return this.#measureWithoutGarbage(measured)
      })
      .then(
        (bytes) => {
          this.#memory.record(bytes, performance.now())
          this.#heapBytes = bytes
          if (this.#memory.isFull && this.#memory.isNear(bytes)) this.#host.watchdog.retire(this)
        },
        // The isolate is gone.
        () => {},
      )
  }

  /** What an entry has let go of when it ends, as many buffers, would look as if it went on holding it. */
  async #measureWithoutGarbage(measured: Measured): Promise<number> {
    await measured(() => this.isolate.collectGarbage())
    const tookNs = this.isolate.readEntryCpu() > 0 ? this.isolate.entryCpuNs[0]! : 0
    const bytes = await measured(() => this.isolate.heapBytes())
    this.#memory.collected(this.#entriesNs, tookNs, bytes)
    return bytes
  }

  #untilLoaded(code: GuestCode, options: GuestOptions): Promise<LoadReport> {
    return new Promise((resolve) => {
      const wallMs = Math.min(options.limits.wallMs, START_WALL_MAX_MS)
      const limit = setTimeout(
        () => this.endLoad(new LoadFailure(`The module scope did not finish within ${wallMs} ms.`, { outcome: 'timeout' })),
        wallMs,
      ).unref()
      this.#relay.onLoaded = (report) => {
        clearTimeout(limit)
        resolve(report)
      }
      const enterCode = async (measured: Measured): Promise<void> => {
        this.#isCached = await this.isolate.load(JSON.stringify(options), code, measured)
      }
      this.#loadBatch = this.queue.runAlone(this.start, enterCode).catch((cause: unknown) => {
        this.endLoad(new LoadFailure(cause instanceof Error ? cause.message : 'The code does not compile.'))
      })
    })
  }
}
