import type { Worker } from 'node:worker_threads'
import { monotonicClock } from '@carpool/core'
import { startThread } from '@carpool/core/start-thread'
import { createAddressPolicy } from './address-policy.ts'
import { failure, failureSentence, type FetchEnd } from './failure.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import {
  Outbox,
  type ByteTally,
  type EgressPolicy,
  type EgressReading,
  type EgressRequest,
  type EgressResult,
  type FromThread,
  type SocketRequest,
  type StreamPart,
  type StreamSide,
  type ToThread,
} from './messages.ts'
import { afterDeath, type ThreadDeaths } from './restart-delay.ts'
import { describeSocketEnd } from './socket-end.ts'

export interface EgressOptions extends EgressPolicy {
  /** The thread has ended, with the fetches in it. */
  readonly onThreadLost?: (lost: { readonly cause: unknown; readonly restartInMs: number }) => void
}

/** What a test may replace. */
interface ThreadParts {
  readonly startThread: typeof startEgressThread
  readonly pingMs: number
}

/** What is told of a stream to a peer and back. */
export interface StreamEvents {
  /** Some of what the peer sends. */
  data(part: StreamPart): void
  /** The peer's system has taken so many bytes. */
  credit(bytes: number): void
}

/** What is told of a fetch whose bodies may stream. */
export interface FetchEvents extends StreamEvents {
  /** The response has begun to stream. @param text JSON of the core's FetchedHead */
  head(text: string): void
  /** The server takes no more of the request's body. */
  stopped(): void
}

export interface SocketEvents extends StreamEvents {
  /** It is connected, or speaks TLS now. @param text JSON of the core's ConnectedSocket */
  connected(text: string): void
  /** Called exactly once, at last and later. @param end JSON of the core's SocketEnd */
  closed(end: string, bytes: Readonly<ByteTally>): void
}

/** A fetch or socket, from the moment at which it is begun. All of it is harmless once it is over. */
export interface EgressStream {
  send(part: StreamPart): void
  /** So much of what has come was passed on. */
  credit(bytes: number): void
  abort(side: StreamSide): void
  /** Ends it. The end that is told has the bytes that went over until then. */
  stop(): void
}

export interface EgressSocket extends EgressStream {
  /** JSON of the core's TlsOptions. */
  startTls(options: string): void
}

interface OpenFetch {
  readonly settled: (result: EgressResult) => void
  readonly events: FetchEvents | undefined
}

/** How often the thread is asked whether it is there, and how many questions without an answer mean that it is stuck. */
const PING_MS = 2_500
const MAX_UNANSWERED = 4
/** A thread that leaks ends by itself before the process does; bodies are not in its heap. */
const MAX_HEAP_MB = 512
/** Its heap for new objects. V8 would let that grow to twice as much, and keep it at rest. */
const MAX_NEW_MB = 24
const NO_BODY = new Uint8Array()
const NOTHING: EgressReading = { open: 0, waiting: 0, connections: 0, sockets: 0, memoryBytes: 0 }
const NO_BYTES: ByteTally = { bytesOut: 0, bytesIn: 0 }

/** Starts the thread that makes connections. It does not keep the process alive. */
export function startEgressThread(
  policy: EgressPolicy,
  onItems: (items: readonly FromThread[]) => void,
  onEnd: (cause: unknown) => void,
): Worker {
  const options = {
    workerData: policy,
    name: 'carpool-egress',
    // Nothing of the environment: no proxy may come from there.
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB, maxYoungGenerationSizeMb: MAX_NEW_MB },
  }
  const thread = startThread('egress-thread', import.meta.url, options, onEnd)
  thread.unref()
  return thread.on('message', onItems)
}

/** Fetches for functions, under policy. A thread does the work; this hands fetches over and supervises it. */
export class Egress {
  /** Fetches that have ended, counted. */
  readonly ended: Record<FetchEnd, number> = { ok: 0, refused: 0, failed: 0, aborted: 0 }
  readonly #options: EgressOptions
  readonly #parts: ThreadParts
  readonly #open = new Map<number, OpenFetch>()
  readonly #sockets = new Map<number, SocketEvents>()
  readonly #outbox = new Outbox<ToThread>((items, transfers) => this.#thread?.postMessage(items, transfers), queueMicrotask)
  readonly #pingTimer: NodeJS.Timeout
  #lastNumber = 0
  #reading = NOTHING
  #unanswered = 0
  /** Started by the first fetch, and again by the first after its end: undici and its connections take 12 MB. */
  #thread: Worker | undefined
  #startedAtMs = 0
  #deaths: ThreadDeaths | undefined
  /** A thread that keeps ending is not started again before this, on the monotonic clock. */
  #startsFromMs = 0
  #isClosed = false

  /** @throws CarpoolError `invalid-setting` if a range of `allow` or `deny` is none */
  constructor(options: EgressOptions = {}, parts: ThreadParts = { startThread: startEgressThread, pingMs: PING_MS }) {
    const { allow = [], deny = [] } = options
    // In the thread it could only end the thread.
    createAddressPolicy({ allow, deny })
    this.#options = options
    this.#parts = parts
    this.#pingTimer = setInterval(() => this.#ping(), parts.pingMs).unref()
  }

  /** What the thread held a moment ago. */
  get reading(): EgressReading {
    return this.#reading
  }

  /**
   * @param settled called exactly once, later
   * @param events needed if the request's body streams or the response's may
   */
  fetch(request: EgressRequest, settled: (result: EgressResult) => void, events?: FetchEvents): EgressStream {
    this.#launchIfNone()
    const number = ++this.#lastNumber
    this.#open.set(number, { settled, events })
    if (this.#thread === undefined) queueMicrotask(() => this.#fail(number, this.#isClosed ? 'closed' : 'unavailable'))
    else this.#outbox.put({ kind: 'fetch', number, request }, request.body)
    return this.#streamOf(number, this.#open)
  }

  /** Opens a socket. */
  openSocket(request: SocketRequest, events: SocketEvents): EgressSocket {
    this.#launchIfNone()
    const number = ++this.#lastNumber
    this.#sockets.set(number, events)
    if (this.#thread === undefined) {
      queueMicrotask(() => this.#failSocket(number, this.#isClosed ? 'closed' : 'unavailable'))
    } else {
      this.#outbox.put({ kind: 'open', number, request })
    }
    const startTls = (options: string): void => {
      if (this.#sockets.has(number)) this.#outbox.put({ kind: 'start-tls', number, options })
    }
    return { startTls, ...this.#streamOf(number, this.#sockets) }
  }

  #streamOf(number: number, open: ReadonlyMap<number, unknown>): EgressStream {
    const put = (item: ToThread, bytes?: Uint8Array): void => {
      if (open.has(number)) this.#outbox.put(item, bytes)
    }
    return {
      send: (part) => put({ kind: 'data', number, part }, part.bytes),
      credit: (bytes) => put({ kind: 'credit', number, bytes }),
      abort: (side) => put({ kind: 'abort', number, side }),
      stop: () => put({ kind: 'stop', number }),
    }
  }

  /** Ends the thread with all connections; fetches at work fail. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#pingTimer)
    const thread = this.#thread
    this.#thread = undefined
    this.#failAll('closed')
    await thread?.terminate()
  }

  /** Before what wants it is known: if no thread can be started, all that is known fails at once. */
  #launchIfNone(): void {
    if (this.#thread === undefined && !this.#isClosed && monotonicClock() >= this.#startsFromMs) this.#launch()
  }

  #launch(): void {
    this.#startedAtMs = monotonicClock()
    this.#unanswered = 0
    const { allow = [], deny = [], limits = {} } = this.#options
    try {
      const thread: Worker = this.#parts.startThread(
        { allow, deny, limits },
        (items) => {
          this.#unanswered = 0
          for (const item of items) this.#receive(item)
        },
        (cause) => {
          if (this.#thread === thread) this.#lost(cause ?? new Error('The thread ended by itself.'))
        },
      )
      this.#thread = thread
    } catch (cause) {
      // The system has no more threads; not even that may end the server.
      this.#lost(cause)
    }
  }

  #receive(item: FromThread): void {
    switch (item.kind) {
      case 'reading':
        this.#reading = item.reading
        return
      case 'settled':
        return this.#settle(item.number, item.settled)
      case 'connected':
        return this.#sockets.get(item.number)?.connected(item.connected)
      case 'head':
        return this.#open.get(item.number)?.events?.head(item.head)
      case 'stopped':
        return this.#open.get(item.number)?.events?.stopped()
      case 'data':
        return this.#eventsOf(item.number)?.data(item.part)
      case 'credit':
        return this.#eventsOf(item.number)?.credit(item.bytes)
      case 'closed':
        return this.#closeSocket(item.number, item.end, { bytesOut: item.bytesOut, bytesIn: item.bytesIn })
    }
  }

  #eventsOf(number: number): StreamEvents | undefined {
    return this.#sockets.get(number) ?? this.#open.get(number)?.events
  }

  #lost(cause: unknown): void {
    this.#thread = undefined
    this.#reading = NOTHING
    const nowMs = monotonicClock()
    this.#deaths = afterDeath(this.#deaths, nowMs - this.#startedAtMs)
    const { delayMs } = this.#deaths
    this.#startsFromMs = nowMs + delayMs
    this.#options.onThreadLost?.({ cause, restartInMs: delayMs })
    // Last: who is told may begin the next fetch, which may start the next thread.
    this.#failAll('interrupted')
  }

  /** A thread that is stuck counts as ended. */
  #ping(): void {
    const thread = this.#thread
    if (thread === undefined) return
    if (this.#unanswered >= MAX_UNANSWERED) {
      this.#lost(new Error('The thread does not answer.'))
      void thread.terminate()
      return
    }
    // This thread's own event loop may have been late, so questions are counted and not the time.
    this.#unanswered += 1
    this.#outbox.put({ kind: 'ping' })
  }

  #failAll(code: 'closed' | 'interrupted'): void {
    // A listener may begin the next fetch.
    const numbers = [...this.#open.keys()]
    const sockets = [...this.#sockets.keys()]
    for (const number of numbers) this.#fail(number, code)
    for (const number of sockets) this.#failSocket(number, code)
  }

  #failSocket(number: number, code: 'closed' | 'interrupted' | 'unavailable'): void {
    this.#closeSocket(number, JSON.stringify(describeSocketEnd(failure(code), '', DEFAULT_LIMITS)), NO_BYTES)
  }

  #closeSocket(number: number, end: string, bytes: ByteTally): void {
    const events = this.#sockets.get(number)
    this.#sockets.delete(number)
    events?.closed(end, bytes)
  }

  #fail(number: number, code: 'closed' | 'interrupted' | 'unavailable'): void {
    const result = JSON.stringify({ ok: false, message: failureSentence(code) })
    this.#settle(number, { result, body: NO_BODY, end: 'failed', bytesOut: 0, bytesIn: 0 })
  }

  #settle(number: number, result: EgressResult): void {
    const open = this.#open.get(number)
    if (open === undefined) return
    this.#open.delete(number)
    this.ended[result.end] += 1
    open.settled(result)
  }
}
