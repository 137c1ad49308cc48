import type { HeaderList, Holder } from '@carpool/core'
import type { Dispatcher } from 'undici'
import type { Connection } from './connection-pool.ts'
import { failure } from './failure.ts'
import { responseHeaders } from './header-policy.ts'
import type { Hop } from './hop.ts'
import type { EgressLimits } from './limits.ts'
import type { ByteTally } from './messages.ts'
import type { Inflow, Source } from './inflow.ts'
import { READ_BYTES, readCost, type Reader, type ReadTurns } from './read-turns.ts'
import {
  contentCodings,
  decodedHeaders,
  decodingSink,
  discardingSink,
  plainSink,
  WholeBody,
  type BodyEvents,
  type BodySink,
  type BodyTarget,
  type MemoryLease,
} from './response-body.ts'
import { StreamedBody } from './streamed-body.ts'

export interface HopResponse {
  readonly status: number
  readonly statusText: string
  readonly headers: HeaderList
  readonly body: Uint8Array
  /** Whether the connection can be used again. */
  readonly isWhole: boolean
}

/** Whether the body of a response is wanted. */
export type WantsBody = (status: number, headers: HeaderList) => boolean

export interface ExchangeParts {
  readonly limits: EgressLimits
  readonly lease: MemoryLease
  readonly tally: ByteTally
  /** Its reason is what the exchange fails with. */
  readonly signal: AbortSignal
  readonly holder: Holder
  readonly turns: ReadTurns
  readonly wantsBody: WantsBody
  /** The response's body may stream. Absent: it is kept as a whole. @param posted called when the last of it was passed on */
  readonly stream?: (head: ResponseHead, source: Source, posted: () => void) => Inflow
  /** Bytes have come or gone, or are not waited for at the moment (`held`). */
  readonly onMoved: (state: 'moved' | 'held') => void
}

type ResponseHead = Omit<HopResponse, 'body' | 'isWhole'>

/**
 * Sends one request and takes its response, under all limits of one exchange. When it rejects, the connection is to be discarded.
 * @throws failure, or an error of Node or undici
 */
export function exchange(connection: Connection, hop: Hop, parts: ExchangeParts): Promise<HopResponse> {
  const { signal } = parts
  const { promise, resolve, reject } = Promise.withResolvers<HopResponse>()
  const running = new Exchange(connection, parts, resolve, reject)
  const abort = (): void => running.fail(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  else running.begin(hop)
  return promise.finally(() => signal.removeEventListener('abort', abort))
}

class Exchange implements Dispatcher.DispatchHandler, Reader {
  readonly #connection: Connection
  readonly #parts: ExchangeParts
  readonly #resolve: (response: HopResponse) => void
  readonly #reject: (cause: Error) => void
  #controller: Dispatcher.DispatchController | undefined
  #head: ResponseHead | undefined
  #streamed: StreamedBody | undefined
  #sink: BodySink | undefined
  #headTimer: NodeJS.Timeout | undefined
  #interimResponses = 0
  #bodyBytes = 0
  /** What has come in one go: a server may send a body in chunks of a byte. */
  #fresh: Uint8Array[] = []
  /** Of what has come, not told to the turns yet. */
  #cost = 0
  #hasTurn = true
  /** The sink wants no more. */
  #isFull = false
  readonly #onRead = (): void => this.#attempt(() => this.#passOn())
  #isHead = false
  #isAtEnd = false
  #isOver = false

  constructor(
    connection: Connection,
    parts: ExchangeParts,
    resolve: (response: HopResponse) => void,
    reject: (cause: Error) => void,
  ) {
    this.#connection = connection
    this.#parts = parts
    this.#resolve = resolve
    this.#reject = reject
  }

  begin({ url, method, headers, body }: Hop): void {
    this.#isHead = method === 'HEAD'
    // undici takes what can be iterated, although its types do not say so.
    const options = {
      path: url.pathname + url.search,
      method,
      headers: headers.flat(),
      body: body as Uint8Array | null,
    }
    this.#connection.begin(options, this, () => this.#checkFraming())
  }

  fail(cause: Error): void {
    if (!this.#finish()) return
    this.#streamed?.drop()
    this.#sink?.destroy()
    this.#controller?.abort(cause)
    this.#reject(cause)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
  }

  onBodySent(chunk: Uint8Array): void {
    this.#parts.tally.bytesOut += chunk.length
  }

  /** The first byte of a head has come: of the response, or of an interim one. */
  onResponseStarted(): void {
    this.#headTimer ??= setTimeout(() => this.fail(failure('head-timed-out')), this.#parts.limits.headTimeoutMs)
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, _headers: unknown, statusText = ''): void {
    clearTimeout(this.#headTimer)
    this.#headTimer = undefined
    if (this.#isOver) return
    const { limits } = this.#parts
    if (status < 200) {
      this.#interimResponses += 1
      if (this.#interimResponses > limits.maxInterimResponses) this.fail(failure('too-many-interim'))
      return
    }
    this.#attempt(() => {
      const raw = controller.rawHeaders as readonly Uint8Array[]
      if (raw.length / 2 > limits.maxHeaders) throw failure('too-many-headers')
      const headers = responseHeaders(headerPairs(raw))
      this.#head = { status, statusText, headers }
      this.#sink = this.#createSink(status, headers)
    })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#isOver) return
    this.#bodyBytes += chunk.length
    this.#parts.tally.bytesIn += chunk.length
    if (this.#fresh.push(chunk) === 1) queueMicrotask(this.#onRead)
    this.#cost += readCost(chunk.length)
    if (this.#cost >= READ_BYTES) this.#tellCost()
    if ((this.#isFull || !this.#hasTurn) && !controller.paused) controller.pause()
  }

  /** For {@link ReadTurns}. */
  readAgain(): void {
    this.#hasTurn = true
    this.#read()
  }

  onResponseEnd(): void {
    if (this.#isOver) return
    // A body that is delimited by the end of the connection is not whole if that ended with an error.
    if (this.#connection.isBroken) return this.fail(failure('broken-off'))
    this.#isAtEnd = true
    // What is left waits for the function alone.
    this.#parts.onMoved('held')
    this.#attempt(() => {
      this.#passOn()
      this.#sink?.end()
    })
  }

  onResponseError(_controller: unknown, cause: Error): void {
    this.fail(cause)
  }

  #createSink(status: number, headers: HeaderList): BodySink {
    const { limits, wantsBody } = this.#parts
    const events: BodyEvents = {
      onRoom: () => this.#resume(),
      onDone: (body) => this.#complete(body),
      onFailed: (cause) => this.fail(cause),
    }
    if (!wantsBody(status, headers)) return discardingSink(events)
    // A response to HEAD has the length of a body that does not come.
    const announced = this.#isHead ? 0 : announcedBytes(headers)
    const codings = contentCodings(headers, limits.maxCodings)
    const limitBytes = limits.maxResponseBytes
    const target = this.#createTarget(headers, codings, announced)
    if (codings.length === 0) return plainSink(target, events)
    const sentLimitBytes = this.#streamed === undefined ? limitBytes : Number.POSITIVE_INFINITY
    return decodingSink({ codings, limitBytes, sentLimitBytes }, target, events)
  }

  #createTarget(headers: HeaderList, codings: readonly string[], announcedBytes: number): BodyTarget {
    const { limits, lease, stream } = this.#parts
    if (stream !== undefined) {
      const begin = (source: Source, posted: () => void): Inflow =>
        stream({ ...this.#head!, headers: codings.length > 0 ? decodedHeaders(headers) : headers }, source, posted)
      return (this.#streamed = new StreamedBody({ lease, announcedBytes, begin }))
    }
    const limitBytes = limits.maxResponseBytes
    if (announcedBytes > limitBytes) throw failure('response-too-large')
    if (codings.length > 0) return new WholeBody({ limitBytes, lease }, 'decompressed-too-large')
    return new WholeBody({ limitBytes, lease }, 'response-too-large', announcedBytes)
  }

  #tellCost(): void {
    const { turns, holder } = this.#parts
    if (this.#hasTurn) this.#hasTurn = turns.took(holder, this.#cost, this)
    this.#cost = 0
  }

  #passOn(): void {
    const [only] = this.#fresh
    if (only === undefined || this.#isOver) return
    const bytes = this.#fresh.length === 1 ? only : Buffer.concat(this.#fresh)
    this.#fresh = []
    if (this.#cost > 0) this.#tellCost()
    this.#isFull = this.#sink?.write(bytes) === false
    if (!this.#isAtEnd) this.#parts.onMoved(this.#isFull ? 'held' : 'moved')
  }

  #resume(): void {
    if (this.#isOver || this.#isAtEnd) return
    this.#isFull = false
    this.#parts.onMoved('moved')
    this.#read()
  }

  #read(): void {
    if (this.#isOver || this.#isAtEnd || this.#isFull || !this.#hasTurn) return
    if (this.#controller?.paused === true) this.#controller.resume()
  }

  #complete(body: Uint8Array): void {
    const head = this.#head
    if (head === undefined || !this.#finish()) return
    const isDecoded = this.#bodyBytes > 0 && contentCodings(head.headers, this.#parts.limits.maxCodings).length > 0
    const headers = isDecoded ? decodedHeaders(head.headers) : head.headers
    this.#resolve({ ...head, headers, body, isWhole: this.#isAtEnd })
  }

  #checkFraming(): void {
    const framingBytes = this.#connection.bytesRead - this.#bodyBytes
    const most = this.#parts.limits.maxFramingBytes + (this.#streamed === undefined ? 0 : this.#bodyBytes * FRAMING_PER_BYTE)
    if (framingBytes > most) this.fail(failure('too-much-framing'))
  }

  #attempt(work: () => void): void {
    try {
      work()
    } catch (cause) {
      this.fail(cause as Error)
    }
  }

  #finish(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    clearTimeout(this.#headTimer)
    this.#parts.turns.leave(this.#parts.holder, this)
    return true
  }
}

/** What each byte of a body that streams may have around it: a token of a model comes in a chunk of its own. */
const FRAMING_PER_BYTE = 8

function announcedBytes(headers: HeaderList): number {
  const bytes = Number(headers.find(([name]) => name === 'content-length')?.[1])
  return bytes > 0 ? bytes : 0
}

/** Names and values alternate; bytes beyond ASCII are isomorphic-decoded, as in the fetch standard. */
function headerPairs(raw: readonly Uint8Array[]): HeaderList {
  const pairs: [string, string][] = []
  for (let index = 0; index + 1 < raw.length; index += 2) pairs.push([latin1(raw[index]), latin1(raw[index + 1])])
  return pairs
}

function latin1(bytes: Uint8Array | string | undefined): string {
  return typeof bytes === 'object' ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1') : (bytes ?? '')
}
