import type { Metric } from 'prom-client'
import { DURATION_BUCKETS, type Distribution } from './function-series.ts'

/**
 * A histogram by function over counts that are kept elsewhere. prom-client's own looks its labels up at every value, which would take longer
 * than all other counting of an invocation together.
 */
export function histogramOf(
  name: string,
  help: string,
  read: () => Iterable<readonly [functionName: string, Distribution]>,
): Metric {
  const metric = {
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    reset: () => {},
    get: () => {
      const values = [...read()].flatMap(([functionName, distribution]) => valuesOf(name, functionName, distribution))
      return Promise.resolve({ name, help, type: 'histogram', aggregator: 'sum', values })
    },
  }
  // prom-client's type names its own classes only; what it reads of a metric is what stands above.
  return metric as unknown as Metric
}

function valuesOf(name: string, functionName: string, { cumulative, sum }: Distribution): object[] {
  const counts = cumulative
  const total = counts.at(-1) ?? 0
  return [
    ...counts.map((value, index) => ({
      metricName: `${name}_bucket`,
      labels: { le: DURATION_BUCKETS[index] ?? '+Inf', function: functionName },
      value,
    })),
    { metricName: `${name}_sum`, labels: { function: functionName }, value: sum },
    { metricName: `${name}_count`, labels: { function: functionName }, value: total },
  ]
}
