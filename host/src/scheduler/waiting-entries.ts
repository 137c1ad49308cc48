import type { Account } from '../accounting/account.ts'
import type { Entry } from './stay.ts'

/** Of the CPU time of a guest in which both wait, one part of so many goes to what nobody waits for. */
const PARTS = 5

/**
 * Entries of one guest that wait to go in, in the order in which they came; those that nobody waits for behind the others, or timers that start each other
 * would keep every call from its answer. They get a fifth of the guest's CPU time all the same, or the work after an answer would never be done in a busy guest.
 */
export class WaitingEntries {
  readonly #background: Account | undefined
  #awaited: Entry[] = []
  #unawaited: Entry[] = []
  #areAwaited = true
  /** What those that nobody waits for have had beyond their part while others waited too, in ns; below 0: what they are still to have. */
  #aheadNs = 0

  /** @param background whose the entries are that nobody waits for */
  constructor(background: Account | undefined) {
    this.#background = background
  }

  get isEmpty(): boolean {
    return this.#awaited.length === 0 && this.#unawaited.length === 0
  }

  push(entry: Entry): void {
    if (this.#isUnawaited(entry)) this.#unawaited.push(entry)
    else this.#awaited.push(entry)
  }

  /** Whether somebody waits for those that were taken last. */
  get areAwaited(): boolean {
    return this.#areAwaited
  }

  /** Those for the next stay, up to `max`. */
  take(max: number): Entry[] {
    const bothWait = this.#awaited.length > 0 && this.#unawaited.length > 0
    if (!bothWait) this.#aheadNs = 0
    this.#areAwaited = bothWait ? this.#aheadNs >= 0 : this.#awaited.length > 0
    const [taken, left] = split(this.#areAwaited ? this.#awaited : this.#unawaited, max)
    if (this.#areAwaited) this.#awaited = left
    else this.#unawaited = left
    return taken
  }

  /** The stay of those that were taken last has used so much CPU time, in ns. */
  took(cpuNs: number): void {
    this.#aheadNs += this.#areAwaited ? -cpuNs : (PARTS - 1) * cpuNs
  }

  /** Whose first entries have not gone in yet. */
  get unbegun(): Set<Account> {
    return new Set(this.#awaited.filter(({ isFirst }) => isFirst).map(({ account }) => account))
  }

  /** Whose entries wait to go on with what has begun. */
  get resumed(): Set<Account> {
    return new Set(this.#awaited.filter(({ isFirst }) => !isFirst).map(({ account }) => account))
  }

  /** Since when the entry waits that came first of those that somebody waits for, on the monotonic clock, in ms; undefined if none does. */
  get sinceMs(): number | undefined {
    return this.#awaited[0]?.readyAtMs
  }

  /** Takes the first entry of an invocation out again. @returns whether it had not gone in yet */
  drop(invocation: number): boolean {
    const index = this.#awaited.findIndex(({ isFirst, number }) => isFirst && number === invocation)
    if (index >= 0) this.#awaited.splice(index, 1)
    return index >= 0
  }

  #isUnawaited({ account, isUrgent }: Entry): boolean {
    return !isUrgent && this.#background !== undefined && account.open === this.#background
  }
}

function split(entries: Entry[], max: number): [Entry[], Entry[]] {
  return entries.length <= max ? [entries, []] : [entries.slice(0, max), entries.slice(max)]
}
