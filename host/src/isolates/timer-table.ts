import type { Account } from '../accounting/account.ts'

/** Longest delay that Node's timers take; a longer one would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1

/** The timers of one guest, kept on the host's clock. */
export class TimerTable {
  readonly #fire: (timer: number, account: Account) => void
  readonly #timers = new Map<number, NodeJS.Timeout>()

  constructor(fire: (timer: number, account: Account) => void) {
    this.#fire = fire
  }

  get size(): number {
    return this.#timers.size
  }

  /**
   * Starts a timer; one that is open under its number begins anew.
   * @param account whose time the timer's entry takes
   */
  start(timer: number, delayMs: number, account: Account): void {
    clearTimeout(this.#timers.get(timer))
    const timeout = setTimeout(
      () => {
        this.#timers.delete(timer)
        this.#fire(timer, account)
      },
      Math.min(Math.max(delayMs, 0), MAX_DELAY_MS),
    )
    this.#timers.set(timer, timeout)
  }

  stop(timer: number): void {
    clearTimeout(this.#timers.get(timer))
    this.#timers.delete(timer)
  }

  clear(): void {
    for (const timeout of this.#timers.values()) clearTimeout(timeout)
    this.#timers.clear()
  }
}
