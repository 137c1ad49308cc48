import type { Measured } from '../isolates/guest-isolate.ts'
import { StaySize } from './stay-size.ts'
import type { Account } from '../accounting/account.ts'
import type { AskingGuest, EntryGate, Pass } from './entry-gate.ts'
import { Stay, type Entry } from './stay.ts'
import { WaitingEntries } from './waiting-entries.ts'

/** What the queue needs of an isolate. */
export interface EnteredIsolate {
  readonly disposed: boolean
  /** @returns how many entries of the stay have begun; what each has taken, in ns of CPU, is in `spansNs` then */
  readSpans(): number
  readonly spansNs: ArrayLike<number>
  /** A stay is about to begin. */
  forgetSpans(): void
  /** Adds an entry to those that go in next. */
  push(op: number, number: number, text: string, kind: number, body: string): void
  /** They go in, as one stay. Whoever owns the queue calls {@link EntryQueue.left} when all have run, or the isolate is gone. */
  enter(): void
  /** Does a task that enters the isolate, as the one entry of its spans. */
  measure<T>(task: () => Promise<T>): Promise<T>
}

/** Told of the stays of a guest. */
export interface StayListener {
  stayBegan(stay: Stay): void
  /** All has run, or the isolate is gone: what was said in it is to be heard before it is charged. */
  stayLeaves(): void
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

/** Waits until what it has used is charged. */
export interface Charged {
  charged(): void
}

/** CPU time that the first stay of an isolate is taken for, in ms: who is known to need less goes first. */
const FIRST_STAY_MS = 10
/** Weight of the newest stay. */
const STAY_SMOOTHING = 0.5
const NO_ENTRIES: readonly Entry[] = []

/**
 * What is to run in one guest, in order: entries go in together for one stay, and when all have run, what each used is
 * charged. Entries that come meanwhile wait for the next stay. A stay needs a pass of the host's gate.
 */
export class EntryQueue {
  readonly #isolate: EnteredIsolate
  readonly #listener: StayListener
  readonly #gate: EntryGate
  readonly #asking: AskingGuest & { costMs: number }
  readonly #size = new StaySize()
  readonly #alone: Array<() => Promise<void>> = []
  readonly #waiting: WaitingEntries
  #stay: Stay | undefined
  #lastRun: Account | undefined
  /** Those of the stay. */
  #entries = NO_ENTRIES
  #isAtGate = false
  #isNextDue = false
  readonly #nextOfTurn = (): void => {
    this.#isNextDue = false
    this.#next()
  }
  #askedAtMs = 0
  #pass: Pass | undefined
  #afterCharge: Charged[] = []

  /** @param background whose the entries are that nobody waits for */
  constructor(isolate: EnteredIsolate, listener: StayListener, gate: EntryGate, background?: Account) {
    this.#isolate = isolate
    this.#listener = listener
    this.#gate = gate
    this.#waiting = new WaitingEntries(background)
    this.#asking = { guest: this, costMs: FIRST_STAY_MS, begin: (pass) => this.#passed(pass) }
  }

  /** The stay that is under way. */
  get stay(): Stay | undefined {
    return this.#stay
  }

  /** Whose entry ran last in a batch that has ended. */
  get lastRun(): Account | undefined {
    return this.#lastRun
  }

  push(entry: Entry): void {
    this.#waiting.push(entry)
    this.#next()
  }

  /** The same at the end of what runs now in the event loop: what comes in the same frame goes in as one batch. */
  pushSoon(entry: Entry): void {
    this.#waiting.push(entry)
    if (this.#isNextDue || this.#stay !== undefined) return
    this.#isNextDue = true
    queueMicrotask(this.#nextOfTurn)
  }

  /** Whose first entries have not gone in yet. */
  get unbegun(): Set<Account> {
    return this.#waiting.unbegun
  }

  /** Whose entries wait to go on with what has begun. */
  get resumed(): Set<Account> {
    return this.#waiting.resumed
  }

  /**
   * Since when the entry waits that came first of those that somebody waits for, on the monotonic clock, in ms; undefined if
   * none does.
   */
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
   * Runs work that enters the isolate by other means, as a stay of its own, before the entries that wait. Settles when it is
   * charged, with what the work settled with; never if the isolate is gone before its turn.
   * @param work gives each task that enters the isolate to `measured`
   */
  alone<T>(account: Account, work: (measured: Measured) => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#alone.push(async () => {
      const stay = this.#begin([account])
      let knownNs = 0
      const measured: Measured = async (task) => {
        try {
          return await this.#isolate.measure(task)
        } finally {
          if (this.#isolate.readSpans() > 0) knownNs += this.#isolate.spansNs[0] ?? 0
        }
      }
      const [settled] = await Promise.allSettled([(async () => work(measured))()])
      this.#leave(stay, knownNs)
      this.#finish(stay)
      if (settled.status === 'fulfilled') resolve(settled.value)
      else reject(settled.reason)
    })
    this.#next()
    return promise
  }

  /**
   * Tells when what runs now is charged, all of it or as much as is known by then: at once if nothing runs, or only what is
   * left of an isolate.
   */
  whenCharged(waiting: Charged): void {
    if (this.#stay === undefined || this.#stay.isEnded) waiting.charged()
    else this.#afterCharge.push(waiting)
  }

  get someoneWaits(): boolean {
    return this.#afterCharge.length > 0
  }

  /** Charges the stay as far as it is known. */
  charge(): void {
    this.#stay?.charge()
  }

  /** The same, and tells those that wait for the end of the stay. */
  chargeEarly(): void {
    if (this.#stay === undefined) return
    this.#stay.charge()
    this.#tellCharged()
  }

  /** Those that went in last have run, or the isolate is gone. */
  left(): void {
    const [stay, entries] = [this.#stay, this.#entries]
    if (stay === undefined) return
    const ranMs = performance.now() - stay.beganAtMs
    this.#leave(stay)
    this.#lastRun = stay.current
    const { totalNs } = stay
    this.#size.took(totalNs, entries.length)
    this.#waiting.took(totalNs)
    // What nobody waits for is meant to wait.
    if (this.#waiting.areAwaited) this.#tellDelays(stay, entries, ranMs)
    this.#finish(stay)
  }

  #next(): void {
    if (this.#stay !== undefined || this.#isAtGate || !this.#hasWork) return
    this.#isAtGate = true
    this.#askedAtMs = performance.now()
    this.#gate.enter(this.#asking)
  }

  #passed(pass: Pass): void {
    this.#isAtGate = false
    this.#pass = pass
    if (this.#hasWork) this.#enter()
    else pass.leave()
  }

  get #hasWork(): boolean {
    return (this.#alone.length > 0 || !this.#waiting.isEmpty) && !this.#isolate.disposed
  }

  #enter(): void {
    const alone = this.#alone.shift()
    if (alone !== undefined) return void alone()
    const entries = this.#waiting.take(this.#size.max)
    const accounts: Account[] = []
    for (const { account, op, number, text, kind, body } of entries) {
      accounts.push(account)
      this.#isolate.push(op, number, text, kind, body)
    }
    this.#entries = entries
    this.#begin(accounts)
    this.#isolate.enter()
  }

  #tellDelays(stay: Stay, entries: readonly Entry[], ranMs: number): void {
    // While it runs, an entry waits for nothing but a core.
    const offCoreMs = stay.wasHeld ? 0 : Math.max(0, ranMs - stay.totalNs / 1e6)
    this.#listener.stayDelayed(stay.beganAtMs - this.#askedAtMs + offCoreMs)
    let turnMs = offCoreMs
    // What was lost with its isolate has been begun again elsewhere.
    const hasRun = !this.#isolate.disposed
    for (let index = 0; index < entries.length; index++) {
      const entry = entries[index]!
      this.#listener.entryDelayed(stay.beganAtMs - entry.readyAtMs + turnMs)
      turnMs += stay.usedNs[index]! / 1e6
      if (entry.isFirst && hasRun) this.#listener.entryRan(entry.number)
    }
  }

  #begin(accounts: readonly Account[]): Stay {
    const stay = new Stay(accounts, performance.now())
    this.#isolate.forgetSpans()
    this.#stay = stay
    this.#listener.stayBegan(stay)
    return stay
  }

  /** @param aloneNs what its one entry took, if that is not what the clock has */
  #leave(stay: Stay, aloneNs?: number): void {
    this.#listener.stayLeaves()
    if (this.#isolate.disposed) return this.#listener.stayLost(stay)
    if (aloneNs !== undefined) stay.measured([aloneNs])
    else stay.measured(this.#isolate.spansNs, this.#isolate.readSpans())
    stay.charge()
    this.#listener.stayEnded(stay)
  }

  #finish(stay: Stay): void {
    // What they take lately.
    this.#asking.costMs += (stay.totalNs / 1e6 - this.#asking.costMs) * STAY_SMOOTHING
    this.#stay = undefined
    this.#entries = NO_ENTRIES
    this.#tellCharged()
    // Others that ask may go first.
    this.#pass?.leave()
    this.#next()
  }

  #tellCharged(): void {
    if (this.#afterCharge.length === 0) return
    const waiting = this.#afterCharge
    this.#afterCharge = []
    for (const one of waiting) one.charged()
  }
}
