import type { Metric } from 'prom-client'
import { metricOf, type Sample } from './metric.ts'

/** An answer whose body streams, a WebSocket that a function has accepted, or a connection that it has opened to elsewhere. */
export type StreamKind = 'answer' | 'websocket' | 'socket'
export type StreamCounts = Readonly<Record<StreamKind, number>>

/** What is open at this moment. Counted as streams begin and end, so that calls that do not stream pay nothing. */
export class OpenStreams {
  readonly #functions = new Map<string, Record<StreamKind, number>>()
  readonly #totals = { answer: 0, websocket: 0, socket: 0 }
  readonly metrics: readonly Metric[] = [
    metricOf({
      type: 'gauge',
      name: 'carpool_open_streams',
      help: 'Answers of functions whose bodies stream, and WebSockets that functions have accepted, that have not ended.',
      read: () =>
        this.#samples((labels, { answer, websocket }) => [
          { labels: { ...labels, kind: 'answer' }, value: answer },
          { labels: { ...labels, kind: 'websocket' }, value: websocket },
        ]),
    }),
    metricOf({
      type: 'gauge',
      name: 'carpool_open_sockets',
      help: 'Sockets and WebSockets that functions have opened to elsewhere, and that are not closed.',
      read: () => this.#samples((labels, { socket }) => [{ labels, value: socket }]),
    }),
  ]

  /** One has begun or ended. Each that has begun ends once. */
  changed(functionName: string, kind: StreamKind, change: 1 | -1): void {
    let counts = this.#functions.get(functionName)
    if (counts === undefined) this.#functions.set(functionName, (counts = { answer: 0, websocket: 0, socket: 0 }))
    counts[kind] += change
    this.#totals[kind] += change
  }

  /** The function is gone, and so are its series, unless something of it is open still. */
  forget(functionName: string): void {
    const counts = this.#functions.get(functionName)
    if (counts === undefined || counts.answer + counts.websocket + counts.socket > 0) return
    this.#functions.delete(functionName)
  }

  /** Those of all functions. */
  get totals(): StreamCounts {
    return { ...this.#totals }
  }

  #samples(of: (labels: { readonly function: string }, counts: StreamCounts) => Sample[]): Iterable<Sample> {
    return this.#functions.entries().flatMap(([name, counts]) => of({ function: name }, counts))
  }
}
