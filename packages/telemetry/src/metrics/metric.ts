import type { Metric } from 'prom-client'

export type Labels = Readonly<Record<string, string>>

export interface Sample {
  readonly labels: Labels
  /** More labels, the same object for many samples: prom-client writes them out only once. */
  readonly sharedLabels?: Labels
  /** Not finite: not known, and left out. */
  readonly value: number
  /** What histograms put after the name. */
  readonly suffix?: '_bucket' | '_sum' | '_count'
}

export interface MetricOptions {
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  readonly name: string
  readonly help: string
  /** Called at each scrape; series that it leaves out are gone. */
  readonly read: () => Iterable<Sample>
}

/**
 * A metric over counts that are kept elsewhere, as plain numbers. prom-client's own look their labels up at every value, which
 * would take longer than all other counting of an invocation together, and keep the series of what is gone.
 */
export function metricOf({ type, name, help, read }: MetricOptions): Metric {
  const metric = {
    name,
    type,
    get: () => {
      const values = [...read()]
        .filter(({ value }) => Number.isFinite(value))
        .map(({ suffix = '', ...sample }) => ({ metricName: `${name}${suffix}`, ...sample }))
      return Promise.resolve({ name, help, type, values })
    },
  }
  // prom-client's type names its own classes only; what its registry reads of a metric is what stands above.
  return metric as unknown as Metric
}

export const NO_LABELS: Labels = {}

/** Upper bounds in seconds, from the least that an isolate takes to the usual wall limit. */
const DURATION_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const

/** How many values fell at or below each bound, and between it and the one before. */
export class Distribution {
  readonly bounds: readonly number[]
  readonly #counts: Uint32Array
  sum = 0

  /** @param bounds upper bounds, rising */
  constructor(bounds: readonly number[] = DURATION_BUCKETS) {
    this.bounds = bounds
    this.#counts = new Uint32Array(bounds.length + 1)
  }

  observe(value: number): void {
    let bucket = 0
    while (bucket < this.bounds.length && value > this.bounds[bucket]!) bucket++
    this.#counts[bucket]!++
    this.sum += value
  }

  /** Counts up to each bound, the last for no bound. */
  get cumulative(): number[] {
    let sum = 0
    return [...this.#counts].map((count) => (sum += count))
  }
}

interface HistogramOptions {
  readonly name: string
  readonly help: string
  readonly read: () => Iterable<readonly [Labels, Distribution]>
}

export function histogramOf({ name, help, read }: HistogramOptions): Metric {
  return metricOf({
    type: 'histogram',
    name,
    help,
    read: () => [...read()].flatMap(([labels, distribution]) => samplesOf(labels, distribution)),
  })
}

function samplesOf(sharedLabels: Labels, { bounds, cumulative, sum }: Distribution): Sample[] {
  return [
    ...cumulative.map((value, index): Sample => {
      const bound = bounds[index]
      return { suffix: '_bucket', labels: { le: bound === undefined ? '+Inf' : String(bound) }, sharedLabels, value }
    }),
    { suffix: '_sum', labels: NO_LABELS, sharedLabels, value: sum },
    { suffix: '_count', labels: NO_LABELS, sharedLabels, value: cumulative.at(-1) ?? 0 },
  ]
}
