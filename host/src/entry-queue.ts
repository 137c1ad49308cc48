import type { CpuReading, Measured, Primitive } from '@carpool/isolate'
import { IsolateMeter, splitCpu, StaySize, type Account } from '@carpool/metering'
import type { EntryGate, Pass } from './entry-gate.ts'
import { Stay, type Entry } from './stay.ts'
import { WaitingEntries } from './waiting-entries.ts'

/** What the queue needs of an isolate. */
export interface EnteredIsolate {
  readonly cpu: CpuReading
  readonly disposed: boolean
  /** Whether the entry `spans` gives CPU times. */
  readonly hasEntryClock: boolean
  /** CPU time of each entry of the stay so far, by that clock. */
  readonly spans: readonly number[]
  /** A stay is about to begin. */
  forgetSpans(): void
  atRest(waitMs: number): Promise<CpuReading>
  enter(entry: string, args: readonly Primitive[]): void
  run(entry: string, args: readonly Primitive[]): Promise<Primitive>
}

/** Told of the stays of a guest. */
export interface StayListener {
  stayBegan(stay: Stay): void
  /** Everything is charged. */
  stayEnded(stay: Stay): void
  /** The isolate was disposed while it was entered, by us or by V8; the stay is charged only as far as it was early. */
  stayLost(stay: Stay): void
  /** An entry began to run so long after it was ready, in ms. */
  entryDelayed(delayMs: number): void
  /** A stay had to wait so long for a place and for a core, in ms. */
  stayDelayed(delayMs: number): void
  /** The first entry of an invocation has run: without an answer by now, the invocation waits. */
  entryRan(invocation: number): void
}

/** How long the isolate's thread may take to leave before the stay is charged by estimate, in ms: under load it has to get a core for it. */
const LEAVE_MS = 20

/** CPU time that the first stay of an isolate is taken for, in ms: who is known to need less goes first. */
const FIRST_STAY_MS = 10
/** Weight of the newest stay. */
const STAY_SMOOTHING = 0.5

/**
 * What is to run in one guest, in order: entries go in together for one stay, and when all have run, what each used is charged. Entries that
 * come meanwhile wait for the next stay. A stay needs a pass of the host's gate.
 */
export class EntryQueue {
  readonly #isolate: EnteredIsolate
  readonly #listener: StayListener
  readonly #gate: EntryGate
  readonly #meter = new IsolateMeter()
  readonly #size = new StaySize()
  readonly #alone: Array<() => Promise<void>> = []
  readonly #waiting: WaitingEntries
  #stay: Stay | undefined
  /** CPU time that its stays take lately. */
  #stayMs = FIRST_STAY_MS
  #isAtGate = false
  #askedAtMs = 0
  #pass: Pass | undefined
  #afterCharge: Array<() => void> = []

  /** @param background whose the entries are that nobody waits for */
  constructor(isolate: EnteredIsolate, listener: StayListener, gate: EntryGate, background?: Account) {
    this.#isolate = isolate
    this.#listener = listener
    this.#gate = gate
    this.#waiting = new WaitingEntries(background)
    // What it took to make the isolate is not the first entry's.
    const made = isolate.cpu
    if (made.isExact) this.#meter.settle(made)
  }

  /** The stay that is under way. */
  get stay(): Stay | undefined {
    return this.#stay
  }

  push(entry: Entry): void {
    this.#waiting.push(entry)
    this.#next()
  }

  /** Whose first entries have not gone in yet. */
  get unbegun(): Set<Account> {
    return this.#waiting.unbegun
  }

  /** Whose entries wait to go on with what has begun. */
  get resumed(): Set<Account> {
    return this.#waiting.resumed
  }

  /** Since when the entry waits that came first of those that somebody waits for, on the monotonic clock, in ms; undefined if none does. */
  get waitsSinceMs(): number | undefined {
    return this.#waiting.sinceMs
  }

  /** Takes the first entry of an invocation out again. @returns whether it had not gone in yet */
  drop(invocation: number): boolean {
    return this.#waiting.drop(invocation)
  }

  /** Lets others in beside the stay that is under way, which has had its time. */
  stepAside(): void {
    this.#pass?.leave()
  }

  /**
   * Runs work that enters the isolate by other means, as a stay of its own, before the entries that wait. Settles when it is charged, with
   * what the work settled with; never if the isolate is gone before its turn.
   * @param work gives each task that enters the isolate to `measured`
   */
  alone<T>(account: Account, work: (measured: Measured) => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#alone.push(async () => {
      const stay = this.#begin([account])
      let knownNs = 0
      const measured: Measured = async (task) => {
        if (!this.#isolate.hasEntryClock) return task()
        // All three go in together, so they run on one thread.
        this.#isolate.enter('measure', [])
        const [done, told] = await Promise.allSettled([task(), this.#isolate.run('spans', [1])])
        if (told.status === 'fulfilled') knownNs += readSpans(told.value)[0] ?? 0
        if (done.status === 'rejected') throw done.reason
        return done.value
      }
      const [settled] = await Promise.allSettled([(async () => work(measured))()])
      await this.#leave(stay, this.#isolate.hasEntryClock ? [knownNs] : [])
      this.#finish()
      if (settled.status === 'fulfilled') resolve(settled.value)
      else reject(settled.reason)
    })
    this.#next()
    return promise
  }

  /** Calls back when what runs now is charged, all of it or as much as is known by then: at once if nothing runs, or only what is left of an isolate. */
  whenCharged(callback: () => void): void {
    if (this.#stay === undefined || this.#stay.isEnded) callback()
    else this.#afterCharge.push(callback)
  }

  get someoneWaits(): boolean {
    return this.#afterCharge.length > 0
  }

  /** Charges the stay as far as it is known. */
  charge(): void {
    if (this.#stay !== undefined) this.#meter.advance(this.#stay.charge())
  }

  /** The same, and calls back those that wait for the end of the stay. */
  chargeEarly(): void {
    if (this.#stay === undefined) return
    this.charge()
    this.#callBack()
  }

  #next(): void {
    if (this.#stay !== undefined || this.#isAtGate || !this.#hasWork) return
    this.#isAtGate = true
    this.#askedAtMs = performance.now()
    this.#gate.enter({
      guest: this,
      costMs: this.#stayMs,
      begin: (pass) => {
        this.#isAtGate = false
        this.#pass = pass
        if (this.#hasWork) this.#enter()
        else pass.leave()
      },
    })
  }

  get #hasWork(): boolean {
    return !this.#isolate.disposed && (this.#alone.length > 0 || !this.#waiting.isEmpty)
  }

  #enter(): void {
    const alone = this.#alone.shift()
    if (alone !== undefined) return void alone()
    const entries = this.#waiting.take(this.#size.max)
    void this.#run(entries, this.#waiting.areAwaited)
  }

  async #run(entries: readonly Entry[], areAwaited: boolean): Promise<void> {
    const stay = this.#begin(entries.map(({ account }) => account))
    let spans: number[] = []
    try {
      if (entries.length === 1 && !this.#isolate.hasEntryClock) {
        const [{ name, args }] = entries as [Entry]
        await this.#isolate.run(name, args)
      } else {
        for (const { name, args } of entries) this.#isolate.enter(name, args)
        spans = readSpans(await this.#isolate.run('spans', [entries.length]))
      }
    } catch {
      // An entry that throws has run as well; an isolate that is gone is found below.
    }
    const ranMs = performance.now() - stay.beganAtMs
    await this.#leave(stay, spans)
    this.#size.took(stay.totalNs, entries.length)
    this.#waiting.took(stay.totalNs)
    // What nobody waits for is meant to wait.
    if (areAwaited) this.#tell(stay, entries, ranMs)
    this.#finish()
  }

  #tell(stay: Stay, entries: readonly Entry[], ranMs: number): void {
    // While it runs, an entry waits for nothing but a core.
    const offCoreMs = stay.wasHeld || !this.#isolate.hasEntryClock ? 0 : Math.max(0, ranMs - stay.totalNs / 1e6)
    this.#listener.stayDelayed(stay.beganAtMs - this.#askedAtMs + offCoreMs)
    let turnMs = offCoreMs
    for (const [index, { readyAtMs, invocation }] of entries.entries()) {
      this.#listener.entryDelayed(stay.beganAtMs - readyAtMs + turnMs)
      turnMs += stay.usedNs[index]! / 1e6
      // What was lost with its isolate has been begun again elsewhere.
      if (invocation !== undefined && !this.#isolate.disposed) this.#listener.entryRan(invocation)
    }
  }

  #begin(accounts: readonly Account[]): Stay {
    const stay = new Stay(accounts, performance.now())
    this.#isolate.forgetSpans()
    this.#stay = stay
    this.#listener.stayBegan(stay)
    return stay
  }

  async #leave(stay: Stay, spans: readonly number[]): Promise<void> {
    if (this.#isolate.disposed) this.#listener.stayLost(stay)
    else if (this.#isolate.hasEntryClock) {
      stay.measured(spans)
      stay.charge()
      this.#listener.stayEnded(stay)
    } else await this.#chargeByIsolate(stay, spans)
  }

  /** By the isolate's own clock, split by how long each entry took. */
  async #chargeByIsolate(stay: Stay, spans: readonly number[]): Promise<void> {
    let reading = this.#isolate.cpu
    if (!reading.isExact) reading = await this.#isolate.atRest(LEAVE_MS)
    if (this.#isolate.disposed) return this.#listener.stayLost(stay)
    if (reading.isExact) {
      const parts = splitCpu(this.#meter.settle(reading), stay.accounts.length, spans)
      for (const [index, account] of stay.accounts.entries()) account.charge(parts[index] ?? 0)
      stay.settled(parts)
    } else this.#meter.advance(stay.charge())
    this.#listener.stayEnded(stay)
  }

  #finish(): void {
    const tookMs = (this.#stay?.totalNs ?? 0) / 1e6
    this.#stayMs += (tookMs - this.#stayMs) * STAY_SMOOTHING
    this.#stay = undefined
    this.#callBack()
    // Others that ask may go first.
    this.#pass?.leave()
    this.#next()
  }

  #callBack(): void {
    const callbacks = this.#afterCharge
    this.#afterCharge = []
    for (const callback of callbacks) callback()
  }
}

function readSpans(told: Primitive): number[] {
  return typeof told === 'string' && told !== '' ? told.split(',').map(Number) : []
}
