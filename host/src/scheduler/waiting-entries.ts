import type { Account } from '../accounting/account.ts'
import type { Entry } from './batch.ts'

/** Where calls wait too, background work gets one part of so many of the guest's CPU time. */
const PARTS = 5

/**
 * The entries of one guest that wait to run, in order. Background work comes behind the others, or timers that start each other
 * would keep every call from its answer. It gets a fifth of the guest's CPU time all the same, or the work after an answer would
 * never be done in a busy guest.
 */
export class WaitingEntries {
  readonly #backgroundAccount: Account | undefined
  #foreground: Entry[] = []
  #background: Entry[] = []
  #isForeground = true
  /** What background work has had beyond its part while others waited too, in ns; below 0: what it is still to have. */
  #aheadNs = 0

  /** @param backgroundAccount what background work is charged to */
  constructor(backgroundAccount: Account | undefined) {
    this.#backgroundAccount = backgroundAccount
  }

  get isEmpty(): boolean {
    return this.#foreground.length === 0 && this.#background.length === 0
  }

  /** @param behind an entry that it must not overtake: its call may have ended since that came, or another has begun */
  push(entry: Entry, behind?: Entry): void {
    entry.isBackground = behind === undefined || behind.hasGoneIn ? this.#isBackground(entry) : behind.isBackground
    if (entry.isBackground) this.#background.push(entry)
    else this.#foreground.push(entry)
  }

  /** Whether those that were taken last are not background work. */
  get isForeground(): boolean {
    return this.#isForeground
  }

  /** Takes those of the next batch, up to `max`. */
  take(max: number): Entry[] {
    const bothWait = this.#foreground.length > 0 && this.#background.length > 0
    if (!bothWait) this.#aheadNs = 0
    this.#isForeground = bothWait ? this.#aheadNs >= 0 : this.#foreground.length > 0
    const [taken, left] = split(this.#isForeground ? this.#foreground : this.#background, max)
    if (this.#isForeground) this.#foreground = left
    else this.#background = left
    return taken
  }

  /** To be called with the CPU time of the batch of those that were taken last. */
  record(cpuNs: number): void {
    this.#aheadNs += this.#isForeground ? -cpuNs : (PARTS - 1) * cpuNs
  }

  /** Accounts of invocations whose first entry waits. */
  get notStarted(): Set<Account> {
    return new Set(this.#foreground.filter(({ isFirst }) => isFirst).map(({ account }) => account))
  }

  /** Accounts whose entries wait to go on with what has begun. */
  get resuming(): Set<Account> {
    return new Set(this.#foreground.filter(({ isFirst }) => !isFirst).map(({ account }) => account))
  }

  /** Since when the first in the foreground waits, on the monotonic clock, in ms; undefined if none does. */
  get sinceMs(): number | undefined {
    return this.#foreground[0]?.readyAtMs
  }

  /** Takes the first entry of an invocation out again. @returns whether it was still waiting */
  remove(invocation: number): boolean {
    const index = this.#foreground.findIndex(({ isFirst, number }) => isFirst && number === invocation)
    if (index >= 0) this.#foreground.splice(index, 1)
    return index >= 0
  }

  #isBackground({ account, isUrgent }: Entry): boolean {
    return !isUrgent && this.#backgroundAccount !== undefined && account.open === this.#backgroundAccount
  }
}

function split(entries: Entry[], max: number): [Entry[], Entry[]] {
  return entries.length <= max ? [entries, []] : [entries.slice(0, max), entries.slice(max)]
}
