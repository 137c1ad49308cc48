import type { Account } from '@carpool/metering'
import type { Entry } from './stay.ts'

/** Of so many stays one goes to what nobody waits for. */
const STAYS_PER_UNAWAITED = 10

/**
 * Entries of one guest that wait to go in, in the order in which they came; those that nobody waits for behind the others, or timers that start each other
 * would keep every call from its answer. They get some stays all the same, or the work after an answer would never be done in a busy guest.
 */
export class WaitingEntries {
  readonly #background: Account | undefined
  #awaited: Entry[] = []
  #unawaited: Entry[] = []
  #staysInRow = 0

  /** @param background whose the entries are that nobody waits for */
  constructor(background: Account | undefined) {
    this.#background = background
  }

  get isEmpty(): boolean {
    return this.#awaited.length === 0 && this.#unawaited.length === 0
  }

  push(entry: Entry): void {
    const isUnawaited = this.#background !== undefined && entry.account.open === this.#background
    if (isUnawaited) this.#unawaited.push(entry)
    else this.#awaited.push(entry)
  }

  /** Those for the next stay, up to `max`. */
  take(max: number): Entry[] {
    const isTheirs = this.#unawaited.length > 0 && (this.#awaited.length === 0 || ++this.#staysInRow >= STAYS_PER_UNAWAITED)
    if (isTheirs) {
      this.#staysInRow = 0
      const [taken, left] = split(this.#unawaited, max)
      this.#unawaited = left
      return taken
    }
    const [taken, left] = split(this.#awaited, max)
    this.#awaited = left
    return taken
  }

  /** Whose first entries have not gone in yet. */
  get unbegun(): Set<Account> {
    return new Set(this.#awaited.filter(isFirst).map(({ account }) => account))
  }

  /** Whose entries wait to go on with what has begun. */
  get resumed(): Set<Account> {
    return new Set(this.#awaited.filter((entry) => !isFirst(entry)).map(({ account }) => account))
  }

  /** Since when the entry waits that came first of those that somebody waits for, on the monotonic clock, in ms; undefined if none does. */
  get sinceMs(): number | undefined {
    return this.#awaited[0]?.readyAtMs
  }

  /** Takes the first entry of an invocation out again. @returns whether it had not gone in yet */
  drop(invocation: number): boolean {
    const index = this.#awaited.findIndex((entry) => entry.invocation === invocation)
    if (index >= 0) this.#awaited.splice(index, 1)
    return index >= 0
  }
}

function isFirst({ invocation }: Entry): boolean {
  return invocation !== undefined
}

function split(entries: Entry[], max: number): [Entry[], Entry[]] {
  return entries.length <= max ? [entries, []] : [entries.slice(0, max), entries.slice(max)]
}
