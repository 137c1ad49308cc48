import { percentile } from '../statistics.ts'
import type { Call } from './load-order.ts'

/**
 * What became of a call: `refused` is a 429 or 503 of Carpool's own, `left` a client that did not wait, `failed` anything else.
 */
export type CallEnd = 'good' | 'refused' | 'left' | 'failed'

export function endOf({ status, code, failure }: Call): CallEnd {
  if (failure !== undefined) return failure === 'left' ? 'left' : 'failed'
  if (status >= 200 && status < 300) return 'good'
  return (status === 429 || status === 503) && code !== undefined ? 'refused' : 'failed'
}

export function callsThat(end: CallEnd, calls: readonly Call[]): Call[] {
  return calls.filter((call) => endOf(call) === end)
}

/** From when a call was due to its end: what a client feels that does not know how busy the generator was. */
export function latencyMs({ dueMs, endedMs }: Call): number {
  return endedMs - dueMs
}

/** Percentiles by nearest rank; absent if there are no values. */
export interface Distribution {
  readonly count: number
  readonly p50?: number
  readonly p99?: number
  readonly max?: number
}

export function distributionOf(values: readonly number[]): Distribution {
  if (values.length === 0) return { count: 0 }
  return { count: values.length, p50: percentile(values, 50), p99: percentile(values, 99), max: percentile(values, 100) }
}

/** Good answers per second between two moments of the epoch. */
export function goodPerSecond(calls: readonly Call[], fromMs: number, toMs: number): number {
  return (callsThat('good', calls).filter(({ endedMs }) => endedMs >= fromMs && endedMs < toMs).length * 1000) / (toMs - fromMs)
}

/** How many calls ended in which way, most frequent first: `200`, `503 saturated`, `left`, `ECONNRESET`. */
export function endCounts(calls: readonly Call[]): Record<string, number> {
  const counts = new Map<string, number>()
  for (const { status, code, failure } of calls) {
    const name = failure ?? (code === undefined ? String(status) : `${status} ${code}`)
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return Object.fromEntries([...counts].toSorted(([, a], [, b]) => b - a))
}

/** The same in a line of text. */
export function endLine(calls: readonly Call[]): string {
  return (
    Object.entries(endCounts(calls))
      .map(([name, count]) => `${count} x ${name}`)
      .join(', ') || 'none'
  )
}
