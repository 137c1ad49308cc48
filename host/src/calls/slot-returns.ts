import type { Account } from '../accounting/account.ts'
import type { Send } from '../send.ts'

/** Tells the server of invocations that wait from now on, so that others may run: those of one turn in one message. */
export class SlotReturns {
  readonly #send: Send
  readonly #returned = new WeakSet<Account>()
  #invocations: number[] = []

  constructor(send: Send) {
    this.#send = send
  }

  add({ number, account }: { readonly number: number; readonly account: Account }): void {
    this.#returned.add(account)
    this.#invocations.push(number)
    if (this.#invocations.length === 1) queueMicrotask(() => this.#tell())
  }

  /** How many of these are invocations that are under way without a slot. */
  count(accounts: Iterable<Account>): number {
    let sum = 0
    for (const account of accounts) if (account.open === account && this.#returned.has(account)) sum++
    return sum
  }

  #tell(): void {
    this.#send({ type: 'waiting', invocations: this.#invocations })
    this.#invocations = []
  }
}
