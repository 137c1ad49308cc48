import type { CpuReading, Primitive } from '@carpool/isolate'
import { IsolateMeter, splitCpu, StaySize, type Account } from '@carpool/metering'
import { Stay, type Entry } from './stay.ts'

/** What the queue needs of an isolate. */
export interface EnteredIsolate {
  readonly cpu: CpuReading
  readonly disposed: boolean
  atRest(waitMs: number): Promise<CpuReading>
  enter(entry: string, args: readonly Primitive[]): void
  run(entry: string, args: readonly Primitive[]): Promise<Primitive>
}

/** Told of the stays of a guest. */
export interface StayListener {
  stayBegan(stay: Stay): void
  /** Everything is charged. `cpuNs` is what the stay used, less what was charged for it before. */
  stayEnded(stay: Stay, cpuNs: number): void
  /** The isolate was disposed while it was entered, by us or by V8: its clock is gone, and the stay is charged only as far as it was early. */
  stayLost(stay: Stay): void
}

/** How long the isolate's thread may take to leave before the stay is charged by estimate, in ms: under load it has to get a core for it. */
const LEAVE_MS = 20

/**
 * What is to run in one guest, in order: entries go in together for one stay, and when the isolate has come to rest its CPU time is read and
 * charged. Entries that come meanwhile wait for the next stay.
 */
export class EntryQueue {
  readonly #isolate: EnteredIsolate
  readonly #listener: StayListener
  readonly #meter = new IsolateMeter()
  readonly #size = new StaySize()
  readonly #alone: Array<() => Promise<void>> = []
  #waiting: Entry[] = []
  #stay: Stay | undefined
  #afterStay: Array<() => void> = []

  constructor(isolate: EnteredIsolate, listener: StayListener) {
    this.#isolate = isolate
    this.#listener = listener
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

  /** Whose entries of a name have not gone in yet. */
  waitingFor(name: string): Set<Account> {
    return new Set(this.#waiting.filter((entry) => entry.name === name).map(({ account }) => account))
  }

  /**
   * Runs work that enters the isolate by other means, as a stay of its own, before the entries that wait. Settles when it is charged, with
   * what the work settled with; never if the isolate is gone before its turn.
   */
  alone<T>(account: Account, work: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#alone.push(async () => {
      const stay = this.#begin([account])
      const [settled] = await Promise.allSettled([(async () => work())()])
      await this.#leave(stay, [])
      if (settled.status === 'fulfilled') resolve(settled.value)
      else reject(settled.reason)
    })
    this.#next()
    return promise
  }

  /** Calls back when what runs now is charged: at once if nothing does. */
  whenCharged(callback: () => void): void {
    if (this.#stay === undefined) callback()
    else this.#afterStay.push(callback)
  }

  get someoneWaits(): boolean {
    return this.#afterStay.length > 0
  }

  /** Charges the stay so far to whose turn it is, by estimate, and calls back those that wait for that. */
  chargeEarly(): void {
    const stay = this.#stay
    if (stay === undefined) return
    this.#prepay(stay, Math.max(0, stay.estimateNs - stay.prepaidNs))
    this.#callBack()
  }

  #next(): void {
    if (this.#stay !== undefined || this.#isolate.disposed) return
    const alone = this.#alone.shift()
    if (alone !== undefined) return void alone()
    if (this.#waiting.length === 0) return
    const entries = this.#waiting.length <= this.#size.max ? this.#waiting : this.#waiting.slice(0, this.#size.max)
    this.#waiting = entries === this.#waiting ? [] : this.#waiting.slice(entries.length)
    void this.#run(entries)
  }

  async #run(entries: readonly Entry[]): Promise<void> {
    const stay = this.#begin(entries.map(({ account }) => account))
    let spans: number[] = []
    try {
      if (entries.length === 1) {
        const [{ name, args }] = entries as [Entry]
        await this.#isolate.run(name, args)
      } else {
        for (const { name, args } of entries) this.#isolate.enter(name, args)
        const told = await this.#isolate.run('spans', [entries.length])
        spans = typeof told === 'string' ? told.split(',').map(Number) : []
      }
    } catch {
      // An entry that throws has run as well; an isolate that is gone is found below.
    }
    await this.#leave(stay, spans, entries.length)
  }

  #begin(accounts: readonly Account[]): Stay {
    const stay = new Stay(accounts, performance.now())
    this.#stay = stay
    this.#listener.stayBegan(stay)
    return stay
  }

  async #leave(stay: Stay, spans: readonly number[], entries = 0): Promise<void> {
    let reading = this.#isolate.cpu
    if (!reading.isExact) reading = await this.#isolate.atRest(LEAVE_MS)
    if (this.#isolate.disposed) this.#listener.stayLost(stay)
    else this.#charge(stay, reading, spans)
    // What was alone says nothing of entries.
    if (entries > 0) this.#size.took(stay.usedNs, entries)
    this.#stay = undefined
    this.#callBack()
    this.#next()
  }

  #charge(stay: Stay, reading: CpuReading, spans: readonly number[]): void {
    if (!reading.isExact) this.#prepay(stay, Math.max(0, stay.estimateNs - stay.prepaidNs))
    const cpuNs = reading.isExact ? this.#meter.settle(reading) : 0
    const { accounts } = stay
    const parts = splitCpu(cpuNs, accounts.length, spans)
    for (const [index, account] of accounts.entries()) account.charge(parts[index] ?? 0)
    stay.usedNs = cpuNs + stay.prepaidNs
    this.#listener.stayEnded(stay, stay.usedNs)
  }

  #prepay(stay: Stay, ns: number): void {
    const wholeNs = Math.round(ns)
    stay.current.charge(wholeNs)
    stay.prepaidNs += wholeNs
    this.#meter.advance(wholeNs)
  }

  #callBack(): void {
    const callbacks = this.#afterStay
    this.#afterStay = []
    for (const callback of callbacks) callback()
  }
}
