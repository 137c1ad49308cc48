import type { InvocationRecord } from '@carpool/core'
import { Counter, Gauge, Registry, type Metric } from 'prom-client'
import { CPU_PARTS, CpuAccount, type HostCpuTime } from './cpu-account.ts'
import { FunctionSeries } from './function-series.ts'
import { histogramOf } from './histogram.ts'

/**
 * What the server counts for Prometheus. Names of functions are labels, so there are as many series as functions; names as in OpenTelemetry's
 * conventions for FaaS.
 */
export class ServerMetrics {
  readonly #registry = new Registry()
  readonly #cpu = new CpuAccount()
  readonly #functions = new Map<string, FunctionSeries>()

  constructor() {
    const functions = this.#functions
    const cpu = this.#cpu
    // Not those of prom-client's one registry for all.
    const registers: Registry[] = []
    const own: Metric[] = [
      new Counter({
        name: 'faas_invocations_total',
        help: 'Calls of functions by what they came to.',
        labelNames: ['function', 'outcome'],
        registers,
        collect() {
          this.reset()
          for (const [name, { outcomes }] of functions)
            for (const [outcome, count] of outcomes) this.inc({ function: name, outcome }, count)
        },
      }),
      new Counter({
        name: 'faas_coldstarts_total',
        help: 'Invocations that found no warm isolate, by what they found.',
        labelNames: ['function', 'kind'],
        registers,
        collect() {
          this.reset()
          for (const [name, { coldStarts }] of functions)
            for (const [kind, count] of coldStarts) this.inc({ function: name, kind }, count)
        },
      }),
      new Counter({
        name: 'faas_cpu_usage_seconds_total',
        help: 'CPU time of invocations in their isolates, up to their answers.',
        labelNames: ['function'],
        registers,
        collect() {
          this.reset()
          for (const [name, { cpuSeconds }] of functions) this.inc({ function: name }, cpuSeconds)
        },
      }),
      new Gauge({
        name: 'carpool_host_cpu_seconds',
        help: 'CPU time of all host processes since the server started, by what it was for; unattributed: of isolates, in no record (yet).',
        labelNames: ['part'],
        registers,
        collect() {
          const totalsUs = cpu.totalsUs()
          for (const part of CPU_PARTS) this.set({ part }, totalsUs[part] / 1e6)
        },
      }),
      histogramOf('faas_invoke_duration_seconds', 'Time in which the function ran or waited.', () =>
        functions.entries().map(([name, { duration }]) => [name, duration]),
      ),
      histogramOf('faas_init_duration_seconds', 'Time that cold invocations waited for their isolate.', () =>
        functions.entries().map(([name, { init }]) => [name, init]),
      ),
    ]
    for (const metric of own) this.#registry.registerMetric(metric)
  }

  /** An invocation has its record. */
  recorded(record: InvocationRecord): void {
    const { functionName, cpuUs, initCpuUs } = record
    let series = this.#functions.get(functionName)
    if (series === undefined) this.#functions.set(functionName, (series = new FunctionSeries()))
    series.recorded(record)
    this.#cpu.billed('invocations', cpuUs)
    this.#cpu.billed('starts', initCpuUs)
  }

  /** A function used CPU time while nobody waited for it. */
  usedInBackground(cpuUs: number): void {
    this.#cpu.billed('background', cpuUs)
  }

  hostCpu(host: number, time: HostCpuTime): void {
    this.#cpu.host(host, time)
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** All of it, in Prometheus' text format. */
  render(): Promise<string> {
    return this.#registry.metrics()
  }
}
