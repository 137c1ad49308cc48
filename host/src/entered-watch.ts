import { estimateRunning } from '@carpool/metering'
import type { Guest } from './guest.ts'
import type { Stay } from './stay.ts'

/** How often guests that are entered are looked at, in ms: what a limit is kept to. */
const LOOK_MS = 10
/** Most CPU time that is carried on to the next look, in ms: the system tells that of a thread in steps of 4 ms. */
const MAX_CARRY_MS = 20

/**
 * Keeps up with the CPU time of guests that are entered, and has each judged while it is. Without a clock of entries it is estimated from what
 * the process used.
 */
export class EnteredWatch {
  readonly #entered = new Map<Guest, Stay>()
  /** What stays had used at the last look, in ns. */
  readonly #seenNs = new WeakMap<Stay, number>()
  readonly #judge: (guest: Guest, stay: Stay) => void
  #timer: NodeJS.Timeout | undefined
  #lookedMs = 0
  #othersMs = 0
  /** CPU time of stays that ended since the last look, without what was estimated for them before it. */
  #endedMs = 0
  #carryMs = 0

  constructor(judge: (guest: Guest, stay: Stay) => void) {
    this.#judge = judge
  }

  began(guest: Guest, stay: Stay): void {
    this.#entered.set(guest, stay)
    if (this.#timer !== undefined) return
    this.#lookedMs = performance.now()
    this.#othersMs = cpuOutsideLoopMs()
    this.#endedMs = this.#carryMs = 0
    this.#timer = setInterval(() => this.look(), LOOK_MS)
  }

  ended(guest: Guest, stay: Stay): void {
    this.#endedMs += (stay.totalNs - (this.#seenNs.get(stay) ?? 0)) / 1e6
    this.#entered.delete(guest)
  }

  get entered(): Iterable<Guest> {
    return this.#entered.keys()
  }

  get count(): number {
    return this.#entered.size
  }

  /** Brings what is known of the stays under way up to date. */
  update(): void {
    const unclocked: Stay[] = []
    for (const [guest, stay] of this.#entered) {
      // What is left of one is nobody's any more.
      if (stay.isEnded) continue
      if (guest.hasEntryClock) stay.measured(guest.spans)
      else unclocked.push(stay)
    }
    if (unclocked.length > 0) this.#estimate(unclocked)
  }

  #estimate(stays: readonly Stay[]): void {
    const nowMs = performance.now()
    const othersMs = cpuOutsideLoopMs()
    const unclaimedMs = othersMs - this.#othersMs - this.#endedMs + this.#carryMs
    const shares = estimateRunning(
      unclaimedMs,
      stays.map(({ lookedAtMs }) => ({ ranMs: nowMs - Math.max(lookedAtMs, this.#lookedMs) })),
    )
    let claimedMs = 0
    for (const [index, stay] of stays.entries()) {
      const shareMs = shares[index] ?? 0
      stay.estimated(shareMs * 1e6)
      stay.lookedAtMs = nowMs
      this.#seenNs.set(stay, stay.totalNs)
      claimedMs += shareMs
    }
    this.#carryMs = Math.max(-MAX_CARRY_MS, Math.min(unclaimedMs - claimedMs, MAX_CARRY_MS))
    this.#lookedMs = nowMs
    this.#othersMs = othersMs
    this.#endedMs = 0
  }

  /** Brings them up to date, and has each judged. */
  look(): void {
    if (this.#entered.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
      return
    }
    this.update()
    for (const [guest, stay] of this.#entered) this.#judge(guest, stay)
  }
}

/** CPU time of all threads of the process but this one, which never runs function code, in ms. */
function cpuOutsideLoopMs(): number {
  const whole = process.cpuUsage()
  const loop = process.threadCpuUsage()
  return (whole.user + whole.system - loop.user - loop.system) / 1000
}
