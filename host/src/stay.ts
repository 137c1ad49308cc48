import type { Rung } from '@carpool/containment'
import type { Account } from '@carpool/metering'
import type { Primitive } from '@carpool/isolate'

/** One call into a guest, and whose it is. */
export interface Entry {
  readonly name: string
  readonly args: readonly Primitive[]
  readonly account: Account
  /** Since when nothing but a turn was missing, on the monotonic clock, in ms. */
  readonly readyAtMs: number
  /** Number of the invocation that begins with this entry. */
  readonly invocation?: number
  /** It is nobody's, but what comes after it must find it done. */
  readonly isUrgent?: boolean
}

/** A time in which a guest's isolate is entered: it ends when every entry of it has run and is measured. */
export class Stay {
  /** Whose the entries are, in the order in which they run. */
  readonly accounts: readonly Account[]
  readonly beganAtMs: number
  /** When what was used was last looked at. */
  lookedAtMs: number
  /** CPU time that each entry has used so far, as far as it is known, in ns. */
  readonly usedNs: number[]
  /** What of it was charged before the end, because an answer could not wait for it. */
  readonly #chargedNs: number[]
  /** How far it has climbed the kill ladder. */
  rung: Rung = 'running'
  /** When the guest was ended for it, or lost its isolate in it, on the monotonic clock, in ms: that was dealt with. */
  endedAtMs: number | undefined
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
    this.lookedAtMs = nowMs
    this.usedNs = accounts.map(() => 0)
    this.#chargedNs = accounts.map(() => 0)
  }

  /** Its isolate is gone, so nothing more is to be done about its calls. */
  get isEnded(): boolean {
    return this.endedAtMs !== undefined
  }

  /** The clock of entries has said what each has used so far; the last of them runs. */
  measured(spansNs: readonly number[]): void {
    if (spansNs.length === 0) return
    const last = Math.min(spansNs.length, this.accounts.length) - 1
    for (let index = 0; index <= last; index++) this.usedNs[index] = Math.round(spansNs[index] ?? 0)
    this.#turn = last
  }

  /** Without such a clock: the entry whose turn it is has probably used so much more. */
  estimated(ns: number): void {
    this.usedNs[this.#turn]! += Math.round(ns)
  }

  /** Without such a clock: a sign of life of an entry of this account, so all entries before it have run, as far as one can tell. */
  reached(account: Account): void {
    const index = this.accounts.indexOf(account, this.#turn)
    // The sign may have come from what another's entry set free; one that has had its turn tells nothing.
    if (index >= 0) this.#turn = index
  }

  /** Whose entry is running: for certain with a clock of entries, else the last that has given a sign of life. */
  get current(): Account {
    return this.accounts[this.#turn]!
  }

  /** CPU time of the running entry so far, in ns. */
  get turnNs(): number {
    return this.usedNs[this.#turn] ?? 0
  }

  /** CPU time of all entries so far, in ns. */
  get totalNs(): number {
    return this.usedNs.reduce((sum, ns) => sum + ns, 0)
  }

  /** What of an account's use in this stay it was not charged for yet, in ns. */
  unchargedNs(account: Account): number {
    let ns = 0
    for (const [index, one] of this.accounts.entries()) if (one === account) ns += this.usedNs[index]! - this.#chargedNs[index]!
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

  /** The end, without a clock of entries: what was charged besides what was charged before. */
  settled(partsNs: readonly number[]): void {
    for (const index of this.usedNs.keys()) {
      this.#chargedNs[index]! += partsNs[index] ?? 0
      this.usedNs[index] = this.#chargedNs[index]!
    }
  }

  /** Charges every account for what is known so far. @returns how much, in ns */
  charge(): number {
    let sum = 0
    for (const [index, account] of this.accounts.entries()) {
      const ns = Math.max(0, this.usedNs[index]! - this.#chargedNs[index]!)
      account.charge(ns)
      this.#chargedNs[index]! += ns
      sum += ns
    }
    return sum
  }
}
