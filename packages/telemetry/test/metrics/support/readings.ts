import { NO_USAGE, type InvocationRecord } from '@carpool/core'
import type { EgressReading } from '../../../src/metrics/egress-metrics.ts'
import type { FleetReading, HostReading } from '../../../src/metrics/fleet-metrics.ts'
import { ServerMetrics } from '../../../src/metrics/server-metrics.ts'
import { parseTextFormat, seriesKey, type Family } from './text-format.ts'

/** A host with work. */
export const HOST: HostReading = {
  id: 1,
  state: 'ready',
  running: 12,
  limit: 64,
  runDelayMs: { p50: 0.25, p90: 4, p99: 16 },
  saturation: 0.75,
  cpuCores: 0.75,
  loopUtilization: 0.25,
  loopDelayMs: 2,
  enteredIsolates: 2,
  isolates: 40,
  memoryBytes: 268_435_456,
}

export const FLEET: FleetReading = { hosts: [HOST], inFlight: 30, queued: 5, machineCores: 1.5, machineBusyCores: 1.25 }

export const EGRESS: EgressReading = {
  ended: { ok: 100, refused: 7, failed: 3, aborted: 1 },
  open: 12,
  waiting: 2,
  connections: 15,
  memoryBytes: 4096,
}

/** A call that used nothing. */
export const RECORD: InvocationRecord = {
  ...NO_USAGE,
  id: 'one',
  functionName: 'sample',
  revision: '0123456789abcdef',
  owner: 'someone',
  trigger: 'http',
  startedAtMs: 1_800_000_000_000,
  start: 'warm',
  outcome: 'ok',
  status: 200,
  host: 1,
  queueUs: 0,
  wallUs: 0,
  memoryMb: 128,
  bytesIn: 0,
  bytesOut: 0,
  openUs: 0,
}

/** Metrics of a fleet, and of fetches. */
export function metricsOf(fleet: FleetReading, egress?: EgressReading): ServerMetrics {
  const metrics = new ServerMetrics()
  metrics.watchFleet(() => fleet)
  if (egress !== undefined) metrics.watchEgress(() => egress)
  return metrics
}

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
