/**
 * What one piece of work has used so far: an invocation, the start of an isolate, or a function's background work. Entries,
 * timers and fetches keep the account of the work that began them.
 */
export class Account {
  /** CPU time charged so far, in ns. */
  cpuNs = 0
  egressBytesOut = 0
  egressBytesIn = 0
  /** Its invocation waits, and has given its slot in the host back. */
  hasReturnedSlot = false
  #successor: Account | undefined

  /** From now on what is charged here goes to another account: the invocation has its answer, and its record is written. */
  close(successor: Account): void {
    this.#successor = successor
  }

  charge(cpuNs: number): void {
    this.open.cpuNs += cpuNs
  }

  sent(bytes: number): void {
    this.open.egressBytesOut += bytes
  }

  received(bytes: number): void {
    this.open.egressBytesIn += bytes
  }

  /** This account, or the one that took its place. */
  get open(): Account {
    return this.#successor?.open ?? this
  }

  /** What is in it, leaving nothing. */
  take(): { cpuNs: number; egressBytesOut: number; egressBytesIn: number } {
    const { cpuNs, egressBytesOut, egressBytesIn } = this
    this.cpuNs = this.egressBytesOut = this.egressBytesIn = 0
    return { cpuNs, egressBytesOut, egressBytesIn }
  }
}

/** Background work may go on using this much of a core. */
const CORE_SHARE = 0.1

/**
 * What the background work of a guest may use: as much as one invocation at once, and a tenth of a core in the long run. Each
 * entry of it has a limit of its own, but timers that start each other would take a core for ever.
 */
export class BackgroundBudget {
  /** CPU time used, less what has been earned since, in ms. */
  #owedMs = 0
  #atMs = 0

  /** Takes from it. @returns false if it is used up */
  take(cpuMs: number, limitMs: number, nowMs: number): boolean {
    this.#owedMs = Math.max(0, this.#owedMs - (nowMs - this.#atMs) * CORE_SHARE) + cpuMs
    this.#atMs = nowMs
    return this.#owedMs <= limitMs
  }
}
