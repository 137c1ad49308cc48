import { resolveLimits, type FunctionLimits, type HandlerForm, type LogLevel } from '@carpool/core'
import { GuestIsolate, type Bootstrap, type GuestCode, type Measured, type Said } from './guest-isolate.ts'
import type { Pooled } from './isolate-slot.ts'
import { Account } from '../accounting/account.ts'
import { BODY_KINDS, ENTRIES, type BodyKind, type GuestOptions, type LoadReport } from '@carpool/runtime/bridge'
import { BackgroundBudget } from '../accounting/background-budget.ts'
import type { EntryGate } from '../scheduler/entry-gate.ts'
import { EntryQueue, type StayListener } from '../scheduler/entry-queue.ts'
import { callbacksOf, saidBy, type Relay } from './guest-bridge.ts'
import { LoadFailure } from './load-failure.ts'
import type { LogThrottle } from '../calls/log-throttle.ts'
import { MemoryWatch } from './memory-watch.ts'
import { Entry, type Stay } from '../scheduler/stay.ts'
import { TimerTable } from '../calls/timer-table.ts'

/** What a guest tells its host. Numbers and texts come from the guest: trust neither. */
export interface GuestListener {
  answered(guest: Guest, invocation: number, head: string, kind: BodyKind, body: string): void
  failed(guest: Guest, invocation: number, failure: string): void
  fetchStarted(guest: Guest, invocation: number, fetch: number, head: string, kind: BodyKind, body: string): void
  fetchStopped(guest: Guest, fetch: number): void
  /** The guest got round to a `cancel`: what the invocation waits for was told before. */
  canceled(guest: Guest, invocation: number): void
  logged(guest: Guest, invocation: number, level: LogLevel, text: string): void
  /** What of the log lines of the guest's revision may pass, in whichever isolates it runs. */
  logsOf(guest: Guest): LogThrottle
  /** Whose an invocation's work is; undefined if the guest runs no invocation of that number (any more). */
  accountOf(guest: Guest, invocation: number): Account | undefined
  stayBegan(guest: Guest, stay: Stay): void
  stayEnded(guest: Guest, stay: Stay): void
  /** The isolate is gone, in the middle of this stay: V8 ended it, or we did. */
  stayLost(guest: Guest, stay: Stay): void
  /** An entry began to run so long after it was ready, in ms. */
  entryDelayed(delayMs: number): void
  /** A stay had to wait so long for a place and for a core, in ms. */
  stayDelayed(delayMs: number): void
  /** The first entry of an invocation has run. */
  entryRan(invocation: number): void
  /** V8 ended the isolate while nothing ran in it. */
  lostAtRest(guest: Guest): void
  /** V8 gave up on the isolate, and parked its thread for good. */
  gaveUp(guest: Guest): void
  /** The same, before there was a guest in it: the process must end. */
  catastrophe(reason: string): void
  /** It was looked at how much memory the guest holds. */
  memorySeen(guest: Guest): void
}

/** Longest time that a module scope may take, whatever the limit of invocations, in ms: a deploy waits for it, and others behind that. */
const START_WALL_MAX_MS = 60_000

/** An isolate with the guest runtime in it: first blank, then, once loaded, one revision of a function. */
export class Guest implements Pooled {
  /** What of its work nobody waits for. */
  readonly background = new Account()
  readonly backgroundBudget = new BackgroundBudget()
  /** Its start, until it is loaded. */
  readonly start = new Account()
  /** Fetches that the guest waits for; the fetch table counts them. */
  openFetches = 0
  /** Invocations that ever entered it. */
  invocations = 0
  readonly #isolate: GuestIsolate
  readonly #timers: TimerTable
  readonly #relay: Relay
  readonly #said: Said
  readonly #listener: GuestListener
  readonly #queue: EntryQueue
  readonly #memory = new MemoryWatch()
  #revision = ''
  #logs: LogThrottle | undefined
  #isLoaded = false
  #isDisposedByUs = false
  #isOver = false
  #chargedNs = 0
  #heapBytes = 0
  #loadStay: Promise<void> | undefined
  #endLoad: ((failure: LoadFailure) => void) | undefined
  #form: HandlerForm = 'fetch'
  #limits = resolveLimits({})

  private constructor(isolate: GuestIsolate, relay: Relay, listener: GuestListener, gate: EntryGate) {
    this.#isolate = isolate
    this.#relay = relay
    this.#listener = listener
    this.#said = saidBy(this, relay, listener)
    this.#timers = new TimerTable((timer, account) => this.#queue.pushSoon(new Entry(account, ENTRIES.fireTimer, timer)))
    const stays: StayListener = {
      stayBegan: (stay) => listener.stayBegan(this, stay),
      stayLeaves: () => this.hear(),
      stayEnded: (stay) => {
        isolate.unconfine()
        this.#chargedNs += stay.totalNs
        listener.stayEnded(this, stay)
        if (this.#memory.isDue(stay.totalNs, performance.now())) this.#measureMemory()
      },
      stayLost: (stay) => {
        isolate.unconfine()
        listener.stayLost(this, stay)
      },
      entryDelayed: (delayMs) => listener.entryDelayed(delayMs),
      stayDelayed: (delayMs) => listener.stayDelayed(delayMs),
      entryRan: (invocation) => listener.entryRan(invocation),
    }
    this.#queue = new EntryQueue(isolate, stays, gate, this.background)
    isolate.listen({ left: () => this.#queue.left(), said: () => this.#heard() })
  }

  /** Makes an isolate with the runtime booted in it. */
  static async blank(
    bootstrap: Bootstrap,
    memoryLimitMb: number,
    { listener, gate }: { listener: GuestListener; gate: EntryGate },
  ): Promise<Guest> {
    const relay: Relay = { guest: undefined, onLoaded: undefined }
    const isolate = await GuestIsolate.create({
      bootstrap,
      callbacks: callbacksOf(relay),
      memoryLimitMb,
      onCatastrophe: (reason) => (relay.guest === undefined ? listener.catastrophe(reason) : listener.gaveUp(relay.guest)),
    })
    const guest = new Guest(isolate, relay, listener, gate)
    relay.guest = guest
    return guest
  }

  get revision(): string {
    return this.#revision
  }

  get form(): HandlerForm {
    return this.#form
  }

  get disposed(): boolean {
    return this.#isolate.disposed
  }

  /** Whether its module scope has run. */
  get isLoaded(): boolean {
    return this.#isLoaded
  }

  get limits(): FunctionLimits {
    return this.#limits
  }

  /** What it took to make the isolate, in ns, by the isolate's own clock. */
  get bootNs(): number {
    return this.#isolate.bootNs
  }

  /** CPU time of all stays that have ended, in ns. */
  get chargedNs(): number {
    return this.#chargedNs
  }

  /** Takes what it has said since to whom it is for. */
  hear(): void {
    this.#isolate.hear(this.#said)
  }

  /** Tells a stay what its entries have used by now. */
  measure(stay: Stay): void {
    stay.measured(this.#isolate.spansNs, this.#isolate.readSpans())
  }

  /** CPU time of all entries of the stay that is under way, in ns; that of its thread, if the isolate was disposed. */
  get usedNs(): number {
    const count = this.#isolate.readSpans()
    let sum = 0
    for (let index = 0; index < count; index++) sum += this.#isolate.spansNs[index]!
    return sum
  }

  /** Whose the looks at the memory are. */
  get memoryAccount(): Account {
    return this.#memory.account
  }

  /** Whether it was disposed from outside, not by V8. */
  get isDisposedByUs(): boolean {
    return this.#isDisposedByUs
  }

  /** Whether its end was dealt with: of what it said before, only the log counts from then on. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Largest heap that was seen, in KiB. */
  get memoryPeakKb(): number {
    return this.#memory.peakKb
  }

  /** The same in bytes. */
  get heapBytes(): number {
    return this.memoryPeakKb * 1024
  }

  /** The heap as it was seen last, in bytes. */
  get lastHeapBytes(): number {
    return this.#heapBytes
  }

  /** The stay that is under way. */
  get stay(): Stay | undefined {
    return this.#queue.stay
  }

  get queue(): EntryQueue {
    return this.#queue
  }

  get hasBackgroundWork(): boolean {
    return this.#timers.size > 0 || this.openFetches > 0
  }

  get timers(): TimerTable {
    return this.#timers
  }

  /** What of the guest's log lines may pass. */
  get logs(): LogThrottle {
    return (this.#logs ??= this.#listener.logsOf(this))
  }

  /**
   * Runs the module scope of a revision, within its wall limit.
   * @throws LoadFailure
   */
  async load(code: GuestCode, options: GuestOptions): Promise<void> {
    this.#revision = options.revision
    this.#limits = options.limits
    try {
      const ended = new Promise<never>((_, reject) => (this.#endLoad = reject))
      ended.catch(() => {})
      const report = await Promise.race([this.#untilLoaded(code, options), ended])
      // To its end: what comes after the report may go on, and is the start's as well.
      await Promise.race([this.#loadStay, ended])
      if (!report.ok) throw new LoadFailure(report.message, { code: report.code, guestStack: report.stack })
      this.#form = report.form
      if (this.disposed) throw new LoadFailure('The isolate was lost while the function loaded.', { outcome: 'isolate-lost' })
      this.#isLoaded = true
      this.#measureMemory()
    } catch (cause) {
      this.#queue.chargeEarly()
      this.dispose()
      throw cause
    } finally {
      this.#relay.onLoaded = undefined
      this.#endLoad = undefined
    }
  }

  reachedMemoryLimit(): void {
    this.#memory.saw(this.#limits.memoryMb * 1024 * 1024, performance.now())
  }

  #heard(): void {
    this.hear()
    if (this.disposed && !this.#isDisposedByUs && this.stay === undefined) this.#listener.lostAtRest(this)
  }

  /** Gives up on a module scope that is still running, or has lost its isolate. */
  endLoad(failure: LoadFailure): void {
    this.#endLoad?.(failure)
  }

  invoke(account: Account, invocation: number, head: string, kind: BodyKind, body: string): void {
    this.invocations++
    this.#queue.pushSoon(new Entry(account, ENTRIES.invoke, invocation, head, BODY_KINDS.indexOf(kind), body))
  }

  /** The invocation has ended, so what its end brings about is nobody's. What had not gone in yet does not go in at all. */
  cancel(invocation: number): void {
    if (this.#queue.drop(invocation)) return
    // Before what it has brought about, as the end of a fetch, or the guest would try that again.
    this.#queue.push(new Entry(this.background, ENTRIES.cancel, invocation))
  }

  settleFetch(account: Account, fetch: number, result: string, kind: BodyKind, body: string): void {
    this.#queue.pushSoon(new Entry(account, ENTRIES.settleFetch, fetch, result, BODY_KINDS.indexOf(kind), body))
  }

  /** Has what runs in it sleep until {@link resume}. @returns false if that cannot be done */
  hold(): boolean {
    return this.#isolate.hold()
  }

  resume(): void {
    this.#isolate.resume()
  }

  /** Keeps what runs in it from taking the cores of others, until {@link unconfine}, or until the stay has ended; also if it is disposed. */
  confine(): void {
    this.#isolate.confine()
  }

  unconfine(): void {
    this.#isolate.unconfine()
  }

  /** Whose the work of an invocation is, or of the module scope. */
  accountOf(invocation: number): Account {
    return this.#listener.accountOf(this, invocation) ?? (this.#isLoaded ? this.background : this.start)
  }

  dispose(): void {
    this.#isDisposedByUs ||= !this.disposed
    this.#isOver = true
    this.#timers.clear()
    this.#logs?.close()
    this.#isolate.dispose()
  }

  #measureMemory(): void {
    this.#queue
      .alone(this.#memory.account, (measured) => measured(() => this.#isolate.heapBytes()))
      .then(
        (bytes) => {
          this.#memory.saw(bytes, performance.now())
          this.#heapBytes = bytes
          this.#listener.memorySeen(this)
        },
        // The isolate is gone.
        () => {},
      )
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
      const enterCode = (measured: Measured): Promise<void> => this.#isolate.load(JSON.stringify(options), code, measured)
      this.#loadStay = this.#queue.alone(this.start, enterCode).catch((cause: unknown) => {
        this.endLoad(new LoadFailure(cause instanceof Error ? cause.message : 'The code does not compile.'))
      })
    })
  }
}
