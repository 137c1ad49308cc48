import type { Account } from '../accounting/account.ts'
import type { Entry, Lane } from './batch.ts'

/** Where calls wait too, background work gets one part of so many of the guest's CPU time. */
const PARTS = 5
/** A call that has begun goes on before others begin until it has used so much CPU time, in ns. */
const SHORT_CALL_NS = 10e6

/**
 * The entries of one guest that wait to run, each lane in order. Calls that have begun go on before others begin: in a busy guest
 * one that has its response, and needs no more than to pass it on, would else wait for all that came meanwhile. One that has used
 * much goes on in its turn, or whatever always has something to do would keep the others out. Background work comes behind
 * all, or timers that start each other would keep every call from its answer. It gets a fifth of the guest's CPU time all the
 * same, or the work after an answer would never be done in a busy guest.
 */
export class WaitingEntries {
  readonly #backgroundAccount: Account | undefined
  readonly #lanes: Record<Lane, Entry[]> = { begun: [], foreground: [], background: [] }
  #isForeground = true
  /** What background work has had beyond its part while others waited too, in ns; below 0: what it is still to have. */
  #aheadNs = 0

  /** @param backgroundAccount what background work is charged to */
  constructor(backgroundAccount: Account | undefined) {
    this.#backgroundAccount = backgroundAccount
  }

  get isEmpty(): boolean {
    const { begun, foreground, background } = this.#lanes
    return begun.length === 0 && foreground.length === 0 && background.length === 0
  }

  /** @param behind an entry that it must not overtake: its call may have ended since that came, or another has begun */
  push(entry: Entry, behind?: Entry): void {
    // It may have begun before in an isolate that was lost.
    if (entry.isFirst) entry.account.hasBegun = false
    const lane = this.#laneOf(entry)
    entry.lane = behind?.hasGoneIn === false ? laneBehind(behind.lane, lane) : lane
    this.#lanes[entry.lane].push(entry)
  }

  /** Whether those that were taken last are not background work. */
  get isForeground(): boolean {
    return this.#isForeground
  }

  /** Takes those of the next batch, up to `max`. */
  take(max: number): Entry[] {
    const { begun, foreground, background } = this.#lanes
    const othersWait = begun.length > 0 || foreground.length > 0
    const bothWait = othersWait && background.length > 0
    if (!bothWait) this.#aheadNs = 0
    this.#isForeground = bothWait ? this.#aheadNs >= 0 : othersWait
    if (!this.#isForeground) return this.#takeOf('background', max)
    if (begun.length === 0) return this.#takeOf('foreground', max)
    const taken = this.#takeOf('begun', max)
    return taken.concat(this.#takeOf('foreground', max - taken.length))
  }

  #takeOf(lane: Lane, max: number): Entry[] {
    const entries = this.#lanes[lane]
    if (entries.length > max) return entries.splice(0, max)
    this.#lanes[lane] = []
    return entries
  }

  /** To be called with the CPU time of the batch of those that were taken last. */
  record(cpuNs: number): void {
    this.#aheadNs += this.#isForeground ? -cpuNs : (PARTS - 1) * cpuNs
  }

  /** Accounts of invocations whose first entry waits. */
  get notStarted(): Set<Account> {
    return new Set(this.#lanes.foreground.filter(({ isFirst }) => isFirst).map(({ account }) => account))
  }

  /** Accounts whose entries wait to go on with what has begun. */
  get resuming(): Set<Account> {
    const { begun, foreground } = this.#lanes
    return new Set([...begun, ...foreground].filter(({ isFirst }) => !isFirst).map(({ account }) => account))
  }

  /** Since when the first that is no background work waits, on the monotonic clock, in ms; undefined if none does. */
  get sinceMs(): number | undefined {
    const [begun, other] = [this.#lanes.begun[0]?.readyAtMs, this.#lanes.foreground[0]?.readyAtMs]
    return begun === undefined || other === undefined ? (begun ?? other) : Math.min(begun, other)
  }

  /** Takes the first entry of an invocation out again. @returns whether it was still waiting */
  remove(invocation: number): boolean {
    const { foreground } = this.#lanes
    const index = foreground.findIndex(({ isFirst, number }) => isFirst && number === invocation)
    if (index >= 0) foreground.splice(index, 1)
    return index >= 0
  }

  #laneOf({ account, isUrgent }: Entry): Lane {
    const isBackground = this.#backgroundAccount !== undefined && account.open === this.#backgroundAccount
    if (isBackground) return isUrgent ? 'begun' : 'background'
    // What comes of one call keeps its order: it does not begin twice, and what it has used never gets less.
    return account.hasBegun && account.cpuNs < SHORT_CALL_NS ? 'begun' : 'foreground'
  }
}

/** Where one waits that must not overtake another: in the lane of that, but goes first no longer than it would by itself. */
function laneBehind(before: Lane, own: Lane): Lane {
  return before === 'begun' && own !== 'begun' ? 'foreground' : before
}
