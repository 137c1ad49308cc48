import { execUs, type InvocationRecord, type StartKind } from '@carpool/core'

/** Upper bounds in seconds, from the least that an isolate takes to the usual wall limit. */
export const DURATION_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const

/** How many values fell at or below each bound, and between it and the one before. */
export class Distribution {
  readonly #counts = new Uint32Array(DURATION_BUCKETS.length + 1)
  sum = 0

  observe(seconds: number): void {
    let bucket = 0
    while (bucket < DURATION_BUCKETS.length && seconds > DURATION_BUCKETS[bucket]!) bucket++
    this.#counts[bucket]!++
    this.sum += seconds
  }

  /** Counts up to each bound, the last for no bound. */
  get cumulative(): number[] {
    let sum = 0
    return [...this.#counts].map((count) => (sum += count))
  }
}

/** What is counted for one function. Plain numbers, for every invocation passes here: they become series only when somebody reads them. */
export class FunctionSeries {
  readonly outcomes = new Map<InvocationRecord['outcome'], number>()
  readonly coldStarts = new Map<StartKind, number>()
  readonly duration = new Distribution()
  readonly init = new Distribution()
  cpuSeconds = 0

  recorded(record: InvocationRecord): void {
    const { outcome, start, cpuUs, initUs } = record
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1)
    if (outcome === 'refused') return
    this.duration.observe(execUs(record) / 1e6)
    this.cpuSeconds += cpuUs / 1e6
    if (start === 'warm') return
    this.coldStarts.set(start, (this.coldStarts.get(start) ?? 0) + 1)
    this.init.observe(initUs / 1e6)
  }
}
