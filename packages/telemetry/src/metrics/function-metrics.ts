import { execUs, type InvocationRecord, type StartKind, type Trigger } from '@carpool/core'
import type { Metric } from 'prom-client'
import { Distribution, histogramOf, metricOf, type Labels, type Sample } from './metric.ts'

/**
 * Metrics of functions. Names and units are those of OpenTelemetry's conventions for FaaS, as Prometheus writes them; labels are
 * the function and its trigger, never anything of a single invocation.
 */
export class FunctionMetrics {
  readonly #functions = new Map<string, Map<Trigger, FunctionSeries>>()
  readonly #rejections = new Map<string, number>()
  readonly metrics: readonly Metric[]

  constructor() {
    this.metrics = [
      this.#counter('faas_invocations_total', 'Calls of functions by what they came to.', function* ({ labels, outcomes }) {
        for (const [outcome, value] of outcomes) yield { labels: { ...labels, outcome }, value }
      }),
      this.#counter(
        'faas_errors_total',
        'Invocations that failed; timeouts and clients that left are not among them.',
        ({ labels, errors }) => [{ labels, value: errors }],
      ),
      this.#counter('faas_timeouts_total', 'Invocations that passed their wall limit.', ({ labels, timeouts }) => [
        { labels, value: timeouts },
      ]),
      this.#counter(
        'faas_coldstarts_total',
        'Invocations that found no warm isolate, by what they found.',
        function* ({ labels, coldStarts }) {
          for (const [kind, value] of coldStarts) yield { labels: { ...labels, kind }, value }
        },
      ),
      this.#counter(
        'faas_cpu_usage_seconds_total',
        'CPU time of invocations in their isolates, up to their answers.',
        ({ labels, cpuSeconds }) => [{ labels, value: cpuSeconds }],
      ),
      this.#counter(
        'faas_net_io_bytes_total',
        'Bodies that functions received and transmitted, from and to their clients and the upstreams that they fetch from.',
        ({ labels, bytes }) => [
          { labels: { ...labels, direction: 'receive', peer: 'client' }, value: bytes.fromClient },
          { labels: { ...labels, direction: 'transmit', peer: 'client' }, value: bytes.toClient },
          { labels: { ...labels, direction: 'receive', peer: 'upstream' }, value: bytes.fromUpstream },
          { labels: { ...labels, direction: 'transmit', peer: 'upstream' }, value: bytes.toUpstream },
        ],
      ),
      this.#histogram(
        'faas_invoke_duration_seconds',
        'Time in which the function ran or waited, without the queue and without the start of an isolate.',
        ({ duration }) => duration,
      ),
      this.#histogram('faas_init_duration_seconds', 'Time that cold invocations waited for their isolate.', ({ init }) => init),
      this.#histogram(
        'faas_mem_usage_bytes',
        'Largest heap that the isolate of an invocation had had when it ended; invocations share isolates.',
        ({ memory }) => memory,
      ),
      metricOf({
        type: 'counter',
        name: 'carpool_function_unhandled_rejections_total',
        help: 'Promises that were rejected in functions and that nobody awaited; each has a line in the log.',
        read: () => {
          const names = new Set([...this.#functions.keys(), ...this.#rejections.keys()])
          return [...names].map((name) => ({ labels: { function: name }, value: this.#rejections.get(name) ?? 0 }))
        },
      }),
    ]
  }

  /** Promises of a function were rejected, and nobody awaited them. */
  rejected(functionName: string, count: number): void {
    this.#rejections.set(functionName, (this.#rejections.get(functionName) ?? 0) + count)
  }

  recorded(record: InvocationRecord): void {
    const { functionName, trigger } = record
    let ofFunction = this.#functions.get(functionName)
    if (ofFunction === undefined) this.#functions.set(functionName, (ofFunction = new Map()))
    let series = ofFunction.get(trigger)
    if (series === undefined) ofFunction.set(trigger, (series = new FunctionSeries(functionName, trigger)))
    series.recorded(record)
  }

  /** The function is gone, and so are its series. */
  forget(functionName: string): void {
    this.#functions.delete(functionName)
    this.#rejections.delete(functionName)
  }

  #counter(name: string, help: string, samples: (series: FunctionSeries) => Iterable<Sample>): Metric {
    return metricOf({ type: 'counter', name, help, read: () => this.#series().flatMap(samples) })
  }

  #histogram(name: string, help: string, of: (series: FunctionSeries) => Distribution): Metric {
    return histogramOf({
      name,
      help,
      read: () => this.#series().map((series): [Labels, Distribution] => [series.labels, of(series)]),
    })
  }

  #series(): IteratorObject<FunctionSeries> {
    return this.#functions.values().flatMap((ofFunction) => ofFunction.values())
  }
}

const MIB = 1024 * 1024

/** Upper bounds in bytes, up to the largest memory limit. */
const MEMORY_BUCKETS = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096].map((mebibytes) => mebibytes * MIB)

/** The words of OpenTelemetry's `faas.trigger`, which has none for a command line. */
const TRIGGER_LABELS: Readonly<Record<Trigger, string>> = { http: 'http', cli: 'other' }

/**
 * What is counted for one function and one trigger. Plain numbers, for every invocation passes here: they become series only when
 * somebody reads them.
 */
class FunctionSeries {
  readonly labels: Labels
  readonly outcomes = new Map<InvocationRecord['outcome'], number>()
  readonly coldStarts = new Map<StartKind, number>()
  readonly duration = new Distribution()
  readonly init = new Distribution()
  readonly memory = new Distribution(MEMORY_BUCKETS)
  readonly bytes = { fromClient: 0, toClient: 0, fromUpstream: 0, toUpstream: 0 }
  cpuSeconds = 0

  constructor(functionName: string, trigger: Trigger) {
    this.labels = { function: functionName, trigger: TRIGGER_LABELS[trigger] }
  }

  recorded(record: InvocationRecord): void {
    const { outcome, start, cpuUs, initUs, memoryPeakKb } = record
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1)
    if (outcome === 'refused') return
    this.duration.observe(execUs(record) / 1e6)
    this.cpuSeconds += cpuUs / 1e6
    this.bytes.fromClient += record.bytesIn
    this.bytes.toClient += record.bytesOut
    this.bytes.fromUpstream += record.egressBytesIn
    this.bytes.toUpstream += record.egressBytesOut
    // Of an isolate that died with its host nothing is known.
    if (memoryPeakKb > 0) this.memory.observe(memoryPeakKb * 1024)
    if (start === 'warm') return
    this.coldStarts.set(start, (this.coldStarts.get(start) ?? 0) + 1)
    this.init.observe(initUs / 1e6)
  }

  get timeouts(): number {
    return this.outcomes.get('timeout') ?? 0
  }

  /** Invocations that failed, but for timeouts, which are counted by themselves, and for clients that left. */
  get errors(): number {
    let errors = 0
    for (const [outcome, count] of this.outcomes) if (!NO_ERRORS.has(outcome)) errors += count
    return errors
  }
}

const NO_ERRORS: ReadonlySet<InvocationRecord['outcome']> = new Set(['ok', 'refused', 'timeout', 'canceled'])
