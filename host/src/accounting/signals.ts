import { RunDelayHistogram } from '@carpool/wire'
import type { EntryGate } from '../scheduler/entry-gate.ts'
import type { Guest } from '../isolates/guest.ts'
import type { Send } from '../send.ts'

export interface SignalsParts {
  readonly send: Send
  readonly gate: EntryGate
  /** Every guest that is loaded. */
  readonly guests: () => Iterable<Guest>
  /** Invocations of a guest that have given their slots back and want to go on. */
  readonly resumedIn: (guest: Guest) => number
  /** Isolates that are entered. */
  readonly entered: () => number
  readonly hasInvocations: () => boolean
}

/** How often the signals are read, in ms. */
export const SIGNALS_MS = 100
/** A host without work says so this much less often. */
const IDLE_EVERY = 10
/** CPU time within one reading above which the host has work, in µs: the reading itself takes some. */
const WORK_US = 2_000

/** Reads how the host fares and tells the server. */
export class Signals {
  readonly runDelay = new RunDelayHistogram()
  readonly sharedDelay = new RunDelayHistogram()
  readonly #parts: SignalsParts
  #readAtMs = performance.now()
  #loop = performance.eventLoopUtilization()
  #cpuUs = 0
  #silent = 0

  constructor(parts: SignalsParts) {
    this.#parts = parts
  }

  /** To be called every {@link SIGNALS_MS}: how much later it comes is how late the event loop is. */
  read(): void {
    const { send, gate, guests, resumedIn, entered, hasInvocations } = this.#parts
    const nowMs = performance.now()
    const windowMs = nowMs - this.#readAtMs
    this.#readAtMs = nowMs
    const loop = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(loop, this.#loop)
    this.#loop = loop
    const { user, system } = process.cpuUsage()
    const { count, p50Us, p90Us, p99Us } = this.runDelay.summary()
    const runDelay = { count, p50Us: Math.round(p50Us), p90Us: Math.round(p90Us), p99Us: Math.round(p99Us) }
    this.runDelay.reset()
    const sharedDelayUs = Math.round(this.sharedDelay.summary().p50Us)
    this.sharedDelay.reset()
    const hasWork = runDelay.count > 0 || hasInvocations() || gate.waiting > 0 || user + system - this.#cpuUs > WORK_US
    this.#cpuUs = user + system
    if (!hasWork && ++this.#silent < IDLE_EVERY) return
    this.#silent = 0
    let [isolates, lingering, resumed, oldestWaitMs] = [0, 0, 0, 0]
    for (const guest of guests()) {
      isolates++
      if (guest.hasBackgroundWork) lingering++
      resumed += resumedIn(guest)
      oldestWaitMs = Math.max(oldestWaitMs, nowMs - (guest.queue.waitsSinceMs ?? nowMs))
    }
    send({
      type: 'signals',
      windowMs: Math.round(windowMs),
      runDelay,
      sharedDelayUs,
      oldestWaitUs: Math.round(oldestWaitMs * 1000),
      resumed,
      entered: entered(),
      isolates,
      lingering,
      loopUtilization: Math.round(utilization * 1000) / 1000,
      loopDelayMs: Math.max(0, Math.round(windowMs - SIGNALS_MS)),
      cpuUs: this.#cpuUs,
      memoryBytes: process.memoryUsage.rss(),
    })
  }
}
