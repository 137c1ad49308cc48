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
 * A metric over counts that are kept elsewhere, as plain numbers. prom-client's own look their labels up at every value, which would take longer
 * than all other counting of an invocation together, and keep the series of what is gone.
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
