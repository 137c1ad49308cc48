import type { ErrorCode, InvocationRecord } from '@carpool/core'
import type { Metric } from 'prom-client'
import { Distribution, histogramOf, metricOf, NO_LABELS } from './metric.ts'

/** Upper bounds in seconds: a call that waits for nothing takes less than the first. */
const QUEUE_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** The codes of overload and of faults of ours. They are 0 from the start, so that their first increase shows in a rate. */
const SHED_REASONS = [
  'too-many-requests',
  'saturated',
  'no-host',
  'ledger-unavailable',
  'draining',
] as const satisfies ErrorCode[]

/** Metrics of calls before they reach a host: how long they waited, and which were refused. */
export class QueueMetrics {
  readonly #queue = new Distribution(QUEUE_BUCKETS)
  readonly #shed = new Map<ErrorCode, number>(SHED_REASONS.map((reason) => [reason, 0]))
  #unrecorded = 0
  readonly metrics: readonly Metric[] = [
    histogramOf({
      name: 'carpool_queue_seconds',
      help: 'Time from the arrival of calls to their place in a host; those that were refused are not in it.',
      read: () => [[NO_LABELS, this.#queue]],
    }),
    metricOf({
      type: 'counter',
      name: 'carpool_shed_total',
      help: 'Calls of functions that were refused before user code ran, by the code of the error.',
      read: () => this.#shed.entries().map(([reason, value]) => ({ labels: { reason }, value })),
    }),
    metricOf({
      type: 'counter',
      name: 'carpool_unrecorded_total',
      help: 'Of these, those without a record, for more were refused than are kept while the ledger cannot be written.',
      read: () => [{ labels: NO_LABELS, value: this.#unrecorded }],
    }),
  ]

  recorded({ outcome, error, host, queueUs }: InvocationRecord): void {
    if (outcome === 'refused') this.shed(error ?? 'internal')
    else if (host !== 0) this.#queue.observe(queueUs / 1e6)
  }

  shed(reason: ErrorCode): void {
    this.#shed.set(reason, (this.#shed.get(reason) ?? 0) + 1)
  }

  unrecorded(): void {
    this.#unrecorded += 1
  }

  get shedCounts(): Record<string, number> {
    return Object.fromEntries(this.#shed)
  }
}
