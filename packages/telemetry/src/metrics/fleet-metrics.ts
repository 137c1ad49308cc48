import { HOST_STATES, type HostInfo, type InvocationRecord } from '@carpool/core'
import { Counter, type Metric } from 'prom-client'
import { metricOf, NO_LABELS, type Sample } from './metric.ts'

const QUANTILES = { 'p50': '0.5', 'p90': '0.9', 'p99': '0.99' } as const

/** Metrics of the hosts. Hosts are a label, so each has its series only for as long as it lives. */
export function fleetMetrics(readFleet: () => FleetReading, counts: HostCounts): Metric[] {
  const gauge = (name: string, help: string, read: (fleet: FleetReading) => number): Metric =>
    metricOf({ type: 'gauge', name, help, read: () => [{ labels: NO_LABELS, value: read(readFleet()) }] })
  const ofHosts = (type: 'counter' | 'gauge', name: string, help: string, read: (host: HostReading) => number): Metric =>
    metricOf({ type, name, help, read: () => liveHosts(readFleet()).map((host) => sampleOf(host, read(host))) })
  const invocations = (fleet: FleetReading): Spread => spreadOf(servingHosts(fleet).map(({ id }) => counts.of(id)))
  return [
    metricOf({
      type: 'gauge',
      name: 'carpool_hosts',
      help: 'Host processes by their state.',
      read: () => {
        const byState = Map.groupBy(readFleet().hosts, ({ state }) => state)
        return HOST_STATES.map((state) => ({ labels: { state }, value: byState.get(state)?.length ?? 0 }))
      },
    }),
    gauge('carpool_invocations_in_flight', 'Invocations admitted and not answered yet.', ({ inFlight }) => inFlight),
    gauge('carpool_invocations_queued', 'Invocations that wait for a place in a host.', ({ queued }) => queued),
    gauge(
      'carpool_machine_cores',
      'Cores that the server and its hosts may use, by their cgroup; may be a fraction.',
      ({ machineCores }) => machineCores,
    ),
    gauge(
      'carpool_machine_busy_cores',
      'Cores of the machine that were busy lately, whoever used them.',
      ({ machineBusyCores }) => machineBusyCores,
    ),
    ofHosts('gauge', 'carpool_host_running', 'Invocations in the host that have not begun to wait.', ({ running }) => running),
    ofHosts('gauge', 'carpool_host_limit', 'How many may be running in the host; adapted by run delay.', ({ limit }) => limit),
    metricOf({
      // Prometheus keeps the label `quantile` for summaries; a summary without a count and a sum is one in its format and in
      // OpenMetrics.
      type: 'summary',
      name: 'carpool_host_run_delay_seconds',
      help: 'How long entries that were ready to run waited for a core lately.',
      read: () => liveHosts(readFleet()).flatMap(runDelaysOf),
    }),
    ofHosts(
      'gauge',
      'carpool_host_saturation',
      'How full the core of the host is: the larger of its CPU in cores and the utilization of its event loop.',
      ({ saturation }) => saturation,
    ),
    ofHosts('gauge', 'carpool_host_cpu_cores', 'CPU of the host process lately, in cores.', ({ cpuCores }) => cpuCores),
    ofHosts(
      'gauge',
      'carpool_host_loop_utilization',
      'Share of the time in which the event loop of the host was busy lately, 0 to 1.',
      ({ loopUtilization }) => loopUtilization,
    ),
    ofHosts(
      'gauge',
      'carpool_host_loop_delay_seconds',
      'How late the event loop of the host is.',
      ({ loopDelayMs }) => loopDelayMs / 1e3,
    ),
    ofHosts(
      'gauge',
      'carpool_host_entered_isolates',
      'Isolates of the host with an entry on a thread at this moment.',
      ({ enteredIsolates }) => enteredIsolates,
    ),
    ofHosts('gauge', 'carpool_host_isolates', 'Isolates of the host with a function loaded.', ({ isolates }) => isolates),
    ofHosts('gauge', 'carpool_host_memory_bytes', 'Resident memory of the host process.', ({ memoryBytes }) => memoryBytes),
    ofHosts('counter', 'carpool_host_invocations_total', 'Invocations that ran in the host.', ({ id }) => counts.of(id)),
    gauge(
      'carpool_host_invocations_mean',
      'Mean of carpool_host_invocations_total over the hosts that serve or have served: not standby, starting or gone.',
      (fleet) => invocations(fleet).mean,
    ),
    gauge(
      'carpool_host_invocations_stddev',
      'Population standard deviation of carpool_host_invocations_total over the same hosts.',
      (fleet) => invocations(fleet).stddev,
    ),
  ]
}

function liveHosts({ hosts }: FleetReading): HostReading[] {
  return hosts.filter(({ state }) => state !== 'gone')
}

function servingHosts(fleet: FleetReading): HostReading[] {
  return liveHosts(fleet).filter(({ state }) => state !== 'standby' && state !== 'starting')
}

function runDelaysOf(host: HostReading): Sample[] {
  return Object.entries(QUANTILES).map(([key, quantile]) => {
    const { labels, value } = sampleOf(host, host.runDelayMs[key as keyof typeof QUANTILES] / 1e3)
    return { labels: { ...labels, quantile }, value }
  })
}

function sampleOf({ id }: HostReading, value: number): Sample {
  return { labels: { host: String(id) }, value }
}

/** One host at this moment. What is not known yet is NaN, and has no series. */
export type HostReading = Pick<
  HostInfo,
  | 'id'
  | 'state'
  | 'running'
  | 'limit'
  | 'runDelayMs'
  | 'saturation'
  | 'cpuCores'
  | 'loopUtilization'
  | 'loopDelayMs'
  | 'enteredIsolates'
  | 'isolates'
  | 'memoryBytes'
>

/** All hosts, and what there is for them to do, at this moment. */
export interface FleetReading {
  /** Those that are gone are counted and have no series of their own. */
  readonly hosts: readonly HostReading[]
  /** Invocations that were admitted and not answered yet, the queued ones included. */
  readonly inFlight: number
  /** Invocations that wait for a place in a host. */
  readonly queued: number
  /** Cores that this server and its hosts may use; may be a fraction. */
  readonly machineCores: number
  /** Of all cores of the machine, those that were busy lately, whoever used them. */
  readonly machineBusyCores: number
}

/** Invocations by the host in which they ran. */
export class HostCounts {
  #invocations = new Map<number, number>()

  recorded({ host, outcome }: InvocationRecord): void {
    if (host === 0 || outcome === 'refused') return
    this.#invocations.set(host, this.of(host) + 1)
  }

  of(host: number): number {
    return this.#invocations.get(host) ?? 0
  }

  /** Forgets all hosts but these. */
  keep(hosts: ReadonlySet<number>): void {
    for (const host of this.#invocations.keys()) if (!hosts.has(host)) this.#invocations.delete(host)
  }
}

/** How figures lie around their mean. */
interface Spread {
  readonly mean: number
  /** Of the population: the root of the mean of the squared distances, divided by n and not by n - 1. */
  readonly stddev: number
}

/** 0 of nothing. */
export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) return { mean: 0, stddev: 0 }
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  // In two passes: the mean of the squares minus the square of the mean loses what matters when counts are large and close
  // together.
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length
  return { mean, stddev: Math.sqrt(variance) }
}

/** What was done about functions that harm host processes. */
export class ContainmentMetrics {
  readonly #poisoned = new Counter({
    name: 'carpool_hosts_poisoned_total',
    help: 'Host processes that were harmed and replaced, by how that was noticed.',
    labelNames: ['reason'],
    registers: [],
  })
  readonly #strikes = new Counter({
    name: 'carpool_function_strikes_total',
    help: 'Times that a function harmed a host process, or may have, by how the function stood afterwards.',
    labelNames: ['standing'],
    registers: [],
  })

  constructor() {
    for (const reason of ['stuck', 'gave-up', 'silent', 'memory']) this.#poisoned.inc({ reason }, 0)
    for (const standing of ['free', 'quarantined', 'disabled']) this.#strikes.inc({ standing }, 0)
  }

  get metrics(): readonly Metric[] {
    return [this.#poisoned, this.#strikes]
  }

  /** @param reason of the kill ladder's closed set */
  hostPoisoned(reason: string): void {
    this.#poisoned.inc({ reason })
  }

  /** @param standing of a closed set */
  struck(standing: string): void {
    this.#strikes.inc({ standing })
  }
}
