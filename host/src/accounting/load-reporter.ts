import type { Guest } from '../isolates/guest.ts'
import type { RunScheduler } from '../scheduler/run-scheduler.ts'
import type { Send } from '../send.ts'

export interface LoadReporterParts {
  readonly send: Send
  readonly scheduler: RunScheduler<Guest>
  /** Every guest that is loaded. */
  readonly guests: () => Iterable<Guest>
  readonly hasInvocations: () => boolean
}

/** How often the load is reported, in ms. */
export const LOAD_REPORT_MS = 100
/** A host without work reports this much less often. */
const IDLE_EVERY = 10
/** CPU time between two reports above which the host has work, in µs: the report itself takes some. */
const WORK_US = 2_000

/** Reports the load of the host to the server. */
export class LoadReporter {
  readonly #parts: LoadReporterParts
  #reportedAtMs = performance.now()
  #loop = performance.eventLoopUtilization()
  #cpuUs = 0
  #skipped = 0

  constructor(parts: LoadReporterParts) {
    this.#parts = parts
  }

  /** To be called every {@link LOAD_REPORT_MS}: how much later it comes is how late the event loop is. */
  report(): void {
    const { send, scheduler, guests, hasInvocations } = this.#parts
    const nowMs = performance.now()
    const windowMs = nowMs - this.#reportedAtMs
    this.#reportedAtMs = nowMs
    const loop = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(loop, this.#loop)
    this.#loop = loop
    const { user, system } = process.cpuUsage()
    const { count, p50Us, p90Us, p99Us } = scheduler.runDelay.summary()
    const runDelay = { count, p50Us: Math.round(p50Us), p90Us: Math.round(p90Us), p99Us: Math.round(p99Us) }
    scheduler.runDelay.reset()
    const sharedDelayUs = Math.round(scheduler.sharedDelay.summary().p50Us)
    scheduler.sharedDelay.reset()
    const hasWork = runDelay.count > 0 || hasInvocations() || scheduler.waiting > 0 || user + system - this.#cpuUs > WORK_US
    this.#cpuUs = user + system
    if (!hasWork && ++this.#skipped < IDLE_EVERY) return
    this.#skipped = 0
    let [isolates, lingering, resumed, oldestWaitMs] = [0, 0, 0, 0]
    for (const guest of guests()) {
      isolates++
      if (guest.hasBackgroundWork) lingering++
      for (const account of guest.queue.resuming) if (account.open === account && account.hasReturnedSlot) resumed++
      oldestWaitMs = Math.max(oldestWaitMs, nowMs - (guest.queue.waitsSinceMs ?? nowMs))
    }
    send({
      type: 'load-report',
      windowMs: Math.round(windowMs),
      runDelay,
      sharedDelayUs,
      oldestWaitUs: Math.round(oldestWaitMs * 1000),
      resumed,
      entered: scheduler.enteredCount,
      isolates,
      lingering,
      loopUtilization: Math.round(utilization * 1000) / 1000,
      loopDelayMs: Math.max(0, Math.round(windowMs - LOAD_REPORT_MS)),
      cpuUs: this.#cpuUs,
      memoryBytes: process.memoryUsage.rss(),
    })
  }
}
