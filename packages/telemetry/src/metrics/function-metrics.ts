import type { InvocationRecord, Trigger } from '@carpool/core'
import type { Metric } from 'prom-client'
import { FunctionSeries } from './function-series.ts'
import { histogramOf, type Distribution } from './histogram.ts'
import { metricOf, type Labels, type Sample } from './metric.ts'

/**
 * What is told of functions. Names and units are those of OpenTelemetry's conventions for FaaS, as Prometheus writes them; labels are the
 * function and its trigger, never anything of a single invocation.
 */
export class FunctionMetrics {
  readonly #functions = new Map<string, Map<Trigger, FunctionSeries>>()
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
    ]
  }

  recorded(record: InvocationRecord): void {
    const { functionName, trigger } = record
    let ofFunction = this.#functions.get(functionName)
    if (ofFunction === undefined) this.#functions.set(functionName, (ofFunction = new Map()))
    let series = ofFunction.get(trigger)
    if (series === undefined) ofFunction.set(trigger, (series = new FunctionSeries(functionName, trigger)))
    series.recorded(record)
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
