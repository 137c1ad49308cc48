/**
 * What one piece of work has used so far: an invocation, the start of an isolate, or a function's work that nobody waits for. Entries, timers
 * and fetches hold on to the account of the work that began them.
 */
export class Account {
  /** CPU time charged so far, in ns. */
  cpuNs = 0
  egressBytesOut = 0
  egressBytesIn = 0
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
