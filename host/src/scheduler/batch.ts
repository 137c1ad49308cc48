import { NOBODY, type Holder, type Rung } from '@carpool/core'
import { ENTRIES } from '@carpool/runtime/bridge'
import type { Account } from '../accounting/account.ts'

/** Where an entry waits: with those of calls that have begun, with those that come in their turn, or among background work. */
export type Lane = 'begun' | 'foreground' | 'background'

/** One call into a guest, and the account that it is charged to. */
export class Entry {
  readonly account: Account
  /** One of {@link ENTRIES}. */
  readonly op: number
  readonly number: number
  text: string
  kind: number
  body: string
  /** Until it goes in, more may be added to it. */
  hasGoneIn = false
  /** Where it waits. */
  lane: Lane = 'foreground'
  /** Since when it could have run, on the monotonic clock, in ms. */
  readonly readyAtMs: number

  constructor(account: Account, op: number, number: number, text = '', kind = 0, body = '', readyAtMs = performance.now()) {
    this.account = account
    this.op = op
    this.number = number
    this.text = text
    this.kind = kind
    this.body = body
    this.readyAtMs = readyAtMs
  }

  /** Whether an invocation, that of its number, begins with it. */
  get isFirst(): boolean {
    return this.op === ENTRIES.invoke
  }

  /** It goes in now. */
  goesIn(): void {
    this.hasGoneIn = true
    if (this.isFirst) this.account.hasBegun = true
  }

  /** It is background work, but what comes after it must find it done. */
  get isUrgent(): boolean {
    return this.op === ENTRIES.cancel
  }
}

/** Entries that run in one go: the isolate is entered once for all of them. It ends when every entry has run and is measured. */
export class Batch {
  /** Of the entries, in the order in which they run. */
  readonly accounts: readonly Account[]
  readonly beganAtMs: number
  /** Whose share of the CPU it takes from. */
  readonly holder: Holder
  /** CPU time of each entry so far, as last measured, in ns. */
  readonly usedNs: number[]
  /** What of it was charged before the end, because an answer could not wait for it. */
  readonly #chargedNs: number[]
  /** Most memory that its isolate ever held, as of its end, in bytes. */
  peakBytes = 0
  /** How far it has climbed the kill ladder. */
  rung: Rung = 'running'
  /** When its isolate was disposed, on the monotonic clock, in ms. From then on nothing is charged to it. */
  endedAtMs: number | undefined = undefined
  /** CPU time of its entries when the isolate was disposed, in ns. */
  atEndNs = 0
  /** Whether the server was told that it has run for a while. */
  isLong = false
  /** For how long it was suspended, in ms. */
  suspendedMs = 0
  /** Its thread was suspended, or waited for the host, so the time that it was off its core says nothing about run delay. */
  wasBlocked = false
  #currentIndex = 0

  constructor(accounts: readonly Account[], nowMs: number, holder: Holder = NOBODY) {
    this.accounts = accounts
    this.beganAtMs = nowMs
    this.holder = holder
    this.usedNs = zeros(accounts.length)
    this.#chargedNs = zeros(accounts.length)
  }

  /** Its isolate is gone, and its calls have been dealt with. Its thread may still be in. */
  get isEnded(): boolean {
    return this.endedAtMs !== undefined
  }

  /**
   * Takes over the CPU times of the entries so far; the last of them runs.
   * @param count of the entries that have begun
   */
  measured(entryCpuNs: ArrayLike<number>, count = entryCpuNs.length): void {
    if (count === 0) return
    const last = Math.min(count, this.accounts.length) - 1
    for (let index = 0; index <= last; index++) this.usedNs[index] = Math.round(entryCpuNs[index] ?? 0)
    this.#currentIndex = last
  }

  /** The account of the running entry. */
  get current(): Account {
    return this.accounts[this.#currentIndex]!
  }

  /** CPU time of the running entry so far, in ns. */
  get currentNs(): number {
    return this.usedNs[this.#currentIndex] ?? 0
  }

  /** CPU time of all entries so far, in ns. */
  get totalNs(): number {
    let sum = 0
    for (let index = 0; index < this.usedNs.length; index++) sum += this.usedNs[index]!
    return sum
  }

  /** What an account used in this batch and was not charged for yet, in ns. */
  unchargedNs(account: Account): number {
    let ns = 0
    for (let index = 0; index < this.accounts.length; index++) {
      if (this.accounts[index] === account) ns += this.usedNs[index]! - this.#chargedNs[index]!
    }
    return ns
  }

  /**
   * Keeps the bill of the running entry's account to a limit, in ms.
   * @param ofEntry the limit is that of the entry, not of the account
   */
  cap(limitMs: number, ofEntry: boolean): void {
    const chargedNs = this.#chargedNs[this.#currentIndex]!
    const elsewhereNs = this.unchargedNs(this.current) - (this.currentNs - chargedNs)
    const roomNs = Math.max(0, limitMs * 1e6 - (ofEntry ? 0 : this.current.cpuNs + elsewhereNs))
    const most = chargedNs + roomNs
    this.usedNs[this.#currentIndex] = Math.min(this.currentNs, ofEntry ? Math.max(roomNs, chargedNs) : most)
  }

  /** Charges every account what was measured and not charged yet. */
  charge(): void {
    for (let index = 0; index < this.accounts.length; index++) {
      const ns = Math.max(0, this.usedNs[index]! - this.#chargedNs[index]!)
      this.accounts[index]!.charge(ns)
      this.#chargedNs[index]! += ns
    }
  }
}

function zeros(count: number): number[] {
  const list: number[] = []
  for (let index = 0; index < count; index++) list.push(0)
  return list
}

/**
 * What the first batch of a function is taken to cost, in ms of CPU. With 10 the start of a function waits ten rounds of a
 * hundred busy ones that need 1 ms each, more than a second.
 */
const FIRST_BATCH_MS = 1
/** Weight of the newest batch in what is usual. */
const COST_SMOOTHING = 0.5
/** The longest batch counts for so much less with each that comes after it. */
const FADING = 0.95

/**
 * What the batches of a function take. Its isolates share it, one after the other: what is ended at its limit each time would
 * else pass for short with each new isolate, and go before what is.
 */
export class BatchCost {
  #usualMs = FIRST_BATCH_MS
  #mostMs = 0

  /** In ms of CPU. */
  get usualMs(): number {
    return this.#usualMs
  }

  /** The most that one took lately, in ms of CPU; 0 if none has run. */
  get mostMs(): number {
    return this.#mostMs
  }

  record(tookMs: number): void {
    this.#usualMs += (tookMs - this.#usualMs) * COST_SMOOTHING
    this.#mostMs = Math.max(tookMs, this.#mostMs * FADING)
  }
}

/** CPU time that the entries of one batch may take together, in ns. */
const TARGET_NS = 1_000_000
/** More entries than this gain nothing: a batch of 16 costs as much per entry as one of 64. */
const MAX_ENTRIES = 64
/** Weight of the newest batch in the average. */
const SMOOTHING = 0.2

/**
 * How many entries may share a batch in an isolate. Each batch costs about 12 µs besides its entries (64 calls of 4 µs one by one
 * take 4 times the CPU that they take together), but answers wait for the end of their batch, and an isolate that has to be ended
 * takes all of its batch with it. So entries that take long run alone, and short ones share a batch of about a millisecond.
 *
 * It begins with one entry, doubles while batches are short, and falls at once when one is not.
 */
export class BatchSize {
  #max = 1
  #entryNs = 0

  /** Most entries in the next batch; 1 or more. */
  get max(): number {
    return this.#max
  }

  /** To be called when a batch has ended. */
  record(cpuNs: number, entries: number): void {
    const entryNs = cpuNs / entries
    this.#entryNs = this.#entryNs === 0 ? entryNs : this.#entryNs + SMOOTHING * (entryNs - this.#entryNs)
    // One long entry among short ones hardly moves an average, and the next of its kind must run alone.
    if (cpuNs > 2 * TARGET_NS) this.#max = 1
    else if (entries === this.#max) this.#max = Math.min(this.#max * 2, MAX_ENTRIES)
    this.#max = Math.max(1, Math.min(this.#max, Math.floor(TARGET_NS / Math.max(this.#entryNs, 1))))
  }
}
