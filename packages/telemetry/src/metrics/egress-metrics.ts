import type { Metric } from 'prom-client'
import { metricOf, NO_LABELS } from './metric.ts'

/** How fetches of functions can end. */
const FETCH_RESULTS = ['ok', 'refused', 'failed', 'aborted'] as const
export type FetchResult = (typeof FETCH_RESULTS)[number]

/** What functions do outside, at this moment. */
export interface EgressReading {
  /** Fetches that have ended since the server started. */
  readonly ended: Readonly<Record<FetchResult, number>>
  /** Fetches that have begun and not ended. */
  readonly open: number
  /** Of these, those that wait for a connection. */
  readonly waiting: number
  /** Connections, used or idle. */
  readonly connections: number
  /** Of requests and responses of open fetches. */
  readonly memoryBytes: number
}

/** Metrics of fetches. Hosts and functions are no labels: a function could make any number of them. */
export function egressMetrics(readEgress: () => EgressReading): Metric[] {
  const gauge = (name: string, help: string, read: (egress: EgressReading) => number): Metric =>
    metricOf({ type: 'gauge', name, help, read: () => [{ labels: NO_LABELS, value: read(readEgress()) }] })
  return [
    metricOf({
      type: 'counter',
      name: 'carpool_egress_fetches_total',
      help: 'Fetches of functions, by how they ended.',
      read: () => FETCH_RESULTS.map((result) => ({ labels: { result }, value: readEgress().ended[result] })),
    }),
    gauge('carpool_egress_fetches_open', 'Fetches of functions that have begun and not ended.', ({ open }) => open),
    gauge('carpool_egress_fetches_waiting', 'Fetches of functions that wait for a connection.', ({ waiting }) => waiting),
    gauge('carpool_egress_connections', 'Connections of functions, used or idle.', ({ connections }) => connections),
    gauge('carpool_egress_buffered_bytes', 'Memory of requests and responses of open fetches.', ({ memoryBytes }) => memoryBytes),
  ]
}
