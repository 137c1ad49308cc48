import type { Account } from '@carpool/metering'
import type { Primitive } from '@carpool/isolate'

/** One call into a guest, and whose it is. */
export interface Entry {
  readonly name: string
  readonly args: readonly Primitive[]
  readonly account: Account
}

/** A time in which a guest's isolate is entered: it ends when every entry of it has run and the isolate's CPU clock stands still again. */
export class Stay {
  /** Whose the entries are, in the order in which they run. */
  readonly accounts: readonly Account[]
  readonly beganAtMs: number
  /** CPU time that the stay has probably used so far, in ns; see the metering package. */
  estimateNs = 0
  /** When the estimate was last brought up to date. */
  estimatedAtMs: number
  /** Charged before the end, because an answer could not wait for it, in ns. */
  prepaidNs = 0
  /** CPU time that it used, once it has ended, in ns. */
  usedNs = 0
  /** The guest was ended for it, or lost its isolate in it, and that was dealt with. */
  isEnded = false
  #reached = 0

  constructor(accounts: readonly Account[], nowMs: number) {
    this.accounts = accounts
    this.beganAtMs = nowMs
    this.estimatedAtMs = nowMs
  }

  /** A sign of life of an entry of this account: all entries before it have run, as far as one can tell. */
  reached(account: Account): void {
    // Whose turn it is may give many signs; they are not those of a later entry of theirs.
    if (this.accounts[this.#reached - 1] === account) return
    const index = this.accounts.indexOf(account, this.#reached)
    // The sign may have come from what another's entry set free; one that has had its turn tells nothing.
    if (index >= 0) this.#reached = index + 1
  }

  /**
   * Whose entry is probably running: the first that has given no sign of life, or the last. A stay of entries that take long has only one, so
   * it is certain for those whose function was slow before.
   */
  get current(): Account {
    return this.accounts[Math.min(this.#reached, this.accounts.length - 1)]!
  }
}
