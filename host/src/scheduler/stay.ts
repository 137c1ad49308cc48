import type { Rung } from '@carpool/core'
import type { Account } from '../accounting/account.ts'
import { ENTRIES } from '@carpool/runtime/bridge'

/** One call into a guest, and whose it is. */
export class Entry {
  readonly account: Account
  /** What it is to do; see the guest's entries. */
  readonly op: number
  readonly number: number
  readonly text: string
  readonly kind: number
  readonly body: string
  /** Since when nothing but a turn was missing, on the monotonic clock, in ms. */
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

  /** It is nobody's, but what comes after it must find it done. */
  get isUrgent(): boolean {
    return this.op === ENTRIES.cancel
  }
}

/** A time in which a guest's isolate is entered: it ends when every entry of it has run and is measured. */
export class Stay {
  /** Whose the entries are, in the order in which they run. */
  readonly accounts: readonly Account[]
  readonly beganAtMs: number
  /** CPU time that each entry has used so far, as far as it is known, in ns. */
  readonly usedNs: number[]
  /** What of it was charged before the end, because an answer could not wait for it. */
  readonly #chargedNs: number[]
  /** How far it has climbed the kill ladder. */
  rung: Rung = 'running'
  /** When the guest was ended for it, or lost its isolate in it, on the monotonic clock, in ms: that was dealt with. */
  endedAtMs: number | undefined = undefined
  /** What the clock of entries had when its isolate was disposed, in ns. */
  atEndNs = 0
  /** The server was told that it has run for a while. */
  isLong = false
  /** How long it was held so that others have their turns, in ms. */
  heldMs = 0
  /** The guest's thread had to wait for the host, so the time that it was off its core tells nothing. */
  wasHeld = false
  #turn = 0

  constructor(accounts: readonly Account[], nowMs: number) {
    this.accounts = accounts
    this.beganAtMs = nowMs
    this.usedNs = zeros(accounts.length)
    this.#chargedNs = zeros(accounts.length)
  }

  /** Its isolate is gone, so nothing more is to be done about its calls. */
  get isEnded(): boolean {
    return this.endedAtMs !== undefined
  }

  /**
   * The clock of entries has said what each has used so far; the last of them runs. @param count of the entries that have begun
   */
  measured(spansNs: ArrayLike<number>, count = spansNs.length): void {
    if (count === 0) return
    const last = Math.min(count, this.accounts.length) - 1
    for (let index = 0; index <= last; index++) this.usedNs[index] = Math.round(spansNs[index] ?? 0)
    this.#turn = last
  }

  /** Whose entry is running. */
  get current(): Account {
    return this.accounts[this.#turn]!
  }

  /** CPU time of the running entry so far, in ns. */
  get turnNs(): number {
    return this.usedNs[this.#turn] ?? 0
  }

  /** CPU time of all entries so far, in ns. */
  get totalNs(): number {
    let sum = 0
    for (let index = 0; index < this.usedNs.length; index++) sum += this.usedNs[index]!
    return sum
  }

  /** What of an account's use in this stay it was not charged for yet, in ns. */
  unchargedNs(account: Account): number {
    let ns = 0
    for (let index = 0; index < this.accounts.length; index++) {
      if (this.accounts[index] === account) ns += this.usedNs[index]! - this.#chargedNs[index]!
    }
    return ns
  }

  /** Whoever runs is billed no more than this in all, in ms. @param ofEntry the limit is that of the entry, not of the account */
  cap(limitMs: number, ofEntry: boolean): void {
    const chargedNs = this.#chargedNs[this.#turn]!
    const elsewhereNs = this.unchargedNs(this.current) - (this.turnNs - chargedNs)
    const roomNs = Math.max(0, limitMs * 1e6 - (ofEntry ? 0 : this.current.cpuNs + elsewhereNs))
    const most = chargedNs + roomNs
    this.usedNs[this.#turn] = Math.min(this.turnNs, ofEntry ? Math.max(roomNs, chargedNs) : most)
  }

  /** Charges every account for what is known so far. */
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
