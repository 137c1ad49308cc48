import { climb, type HostEvidence, type KillPolicy, type Reason, type Rung } from '@carpool/core'

export interface HostWatchdogOptions {
  readonly policy: KillPolicy
  /** What is known of the host now. */
  readonly evidence: (nowMs: number) => Omit<HostEvidence, 'of' | 'poisonedMs' | 'idleMs'>
  /** The host is harmed; by whom is not known. */
  readonly onPoisoned: (reason: Reason) => void
  /** The host is to be killed. */
  readonly onKilled: (reason: Reason) => void
}

/** The server's watchdog on the kill ladder: one for each host. */
export class HostWatchdog {
  readonly #options: HostWatchdogOptions
  #rung: Rung = 'running'
  /** Where the last look would have taken it. */
  #nextRung: Rung = 'running'
  #poisonedAtMs: number | undefined
  #idleSinceMs: number | undefined

  constructor(options: HostWatchdogOptions) {
    this.#options = options
  }

  /** The host has reported that it is harmed, or the watchdog has found out. */
  poisoned(): void {
    this.#rung = 'poisoned'
    this.#poisonedAtMs ??= performance.now()
  }

  /**
   * Called twice a second, until the host is lost. Two looks in a row must find the same: when the server itself was held up,
   * the host's messages may lie unread in the socket, and between two looks they are read.
   */
  look(nowMs: number): void {
    const { policy, evidence, onPoisoned, onKilled } = this.#options
    const known = evidence(nowMs)
    if (known.inFlight > 0) this.#idleSinceMs = undefined
    else this.#idleSinceMs ??= nowMs
    const poisonedMs = this.#poisonedAtMs === undefined ? undefined : nowMs - this.#poisonedAtMs
    const idleMs = this.#idleSinceMs === undefined ? 0 : nowMs - this.#idleSinceMs
    const { rung, reason } = climb(this.#rung, { of: 'host', ...known, poisonedMs, idleMs }, policy)
    const isSure = rung === this.#nextRung
    this.#nextRung = rung
    if (reason === undefined || !isSure) return
    if (rung === 'killed') onKilled(reason)
    else onPoisoned(reason)
  }
}
