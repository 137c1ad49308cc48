import type { ErrorCode, InvocationRecord } from '@carpool/core'
import { Counter, Registry, type Metric } from 'prom-client'
import { CpuAccount, cpuMetrics, type HostCpuTime } from './cpu-metrics.ts'
import { egressMetrics, type EgressReading } from './egress-metrics.ts'
import { ContainmentMetrics, fleetMetrics, HostCounts, type FleetReading } from './fleet-metrics.ts'
import { FunctionMetrics } from './function-metrics.ts'
import { processMetrics } from './process-metrics.ts'
import { QueueMetrics } from './queue-metrics.ts'
import { OpenStreams } from './stream-metrics.ts'

/** How an attempt to start a host process ended. */
export const START_RESULTS = ['ready', 'failed'] as const
export type StartResult = (typeof START_RESULTS)[number]

/**
 * What the server counts for Prometheus. `packages/telemetry/README.md` lists all of it. Labels are names of functions and ids of
 * hosts, so there are as many series as there are of these.
 */
export class ServerMetrics {
  // Not prom-client's one registry for all.
  readonly #registry = new Registry()
  readonly #cpu = new CpuAccount()
  readonly #functions = new FunctionMetrics()
  readonly #queue = new QueueMetrics()
  readonly #hosts = new HostCounts()
  /** What was done about functions that harm hosts. */
  readonly containment = new ContainmentMetrics()
  /** Streamed answers, WebSockets and sockets of functions. */
  readonly streams = new OpenStreams()
  readonly #decisions = new Counter({
    name: 'carpool_scaling_decisions_total',
    help: 'Decisions about the number of hosts.',
    labelNames: ['action', 'reason'],
    registers: [],
  })
  readonly #starts = new Counter({
    name: 'carpool_host_starts_total',
    help: 'Attempts to start a host process, by what came of them.',
    labelNames: ['result'],
    registers: [],
  })
  #readFleet = (): FleetReading => NO_FLEET
  #fleet: FleetReading = NO_FLEET

  constructor() {
    for (const result of START_RESULTS) this.#starts.inc({ result }, 0)
    this.#register([
      ...this.#functions.metrics,
      ...this.#queue.metrics,
      this.#decisions,
      this.#starts,
      ...this.containment.metrics,
      ...this.streams.metrics,
      ...cpuMetrics(this.#cpu),
      ...processMetrics(),
    ])
  }

  /** Adds the metrics of hosts and the machine. @param read called once for each scrape */
  watchFleet(read: () => FleetReading): void {
    this.#readFleet = read
    this.#register(fleetMetrics(() => this.#fleet, this.#hosts))
  }

  /** Adds the metrics of fetches. @param read called a few times for each scrape */
  watchEgress(read: () => EgressReading): void {
    this.#register(egressMetrics(read))
  }

  /** An invocation has its record, or will have it when it can be written. */
  recorded(record: InvocationRecord): void {
    this.#functions.recorded(record)
    this.#queue.recorded(record)
    this.#hosts.recorded(record)
    this.#cpu.billed('invocations', record.cpuUs)
    this.#cpu.billed('starts', record.initCpuUs)
  }

  /** Promises of a function were rejected, and nobody awaited them. */
  rejected(functionName: string, count: number): void {
    this.#functions.rejected(functionName, count)
  }

  /** A function was deleted, and nothing of it runs any more: it has no series from now on. */
  forget(functionName: string): void {
    this.#functions.forget(functionName)
    this.streams.forget(functionName)
  }

  /** A call was refused before it was known which function it calls: it has no record. */
  shed(reason: ErrorCode): void {
    this.#queue.shed(reason)
  }

  /** A call of a function was refused because records cannot be written, and there was no room to keep its own. */
  unrecorded(): void {
    this.#queue.unrecorded()
  }

  /** Calls of functions refused since the server started, by the code of the error. */
  get shedCounts(): Record<string, number> {
    return this.#queue.shedCounts
  }

  /** A function used CPU time for background work. */
  usedInBackground(cpuUs: number): void {
    this.#cpu.billed('background', cpuUs)
  }

  /** Where the CPU time of a host process went since it started. */
  hostCpu(host: number, time: HostCpuTime): void {
    this.#cpu.host(host, time)
  }

  /** An attempt to start a host process has ended. */
  hostStarted(result: StartResult): void {
    this.#starts.inc({ result })
  }

  /**
   * The number of hosts was decided about.
   * @param reason of a closed set: each is a series
   */
  scaled(action: string, reason: string): void {
    this.#decisions.inc({ action, reason })
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** All of it, in Prometheus' text format. */
  async render(): Promise<string> {
    // One look for all metrics, so that they fit together; the registry reads all of them in this turn of the event loop.
    this.#fleet = this.#readFleet()
    const live = this.#fleet.hosts.filter(({ state }) => state !== 'gone')
    this.#hosts.keep(new Set(live.map(({ id }) => id)))
    return this.#registry.metrics()
  }

  #register(metrics: readonly Metric[]): void {
    for (const metric of metrics) this.#registry.registerMetric(metric)
  }
}

const NO_FLEET: FleetReading = { hosts: [], inFlight: 0, queued: 0, machineCores: 0, machineBusyCores: 0 }
