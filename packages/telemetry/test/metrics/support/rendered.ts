import type { ServerMetrics } from '../../../src/metrics/server-metrics.ts'
import { parseTextFormat, seriesKey, type Family } from './text-format.ts'

export async function render(metrics: ServerMetrics): Promise<Record<string, Family>> {
  return Object.fromEntries(parseTextFormat(await metrics.render()))
}

/** Value of the one series with these labels, and no others. */
export function valueOf(family: Family | undefined, labels: Record<string, string>, name?: string): number | undefined {
  const key = seriesKey(labels)
  return family?.samples.find((sample) => seriesKey(sample.labels) === key && (name === undefined || sample.name === name))?.value
}

/** Values of all series together. */
export function sumOf(family: Family | undefined): number | undefined {
  return family?.samples.reduce((sum, { value }) => sum + value, 0)
}
