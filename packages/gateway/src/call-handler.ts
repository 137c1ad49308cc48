import { randomUUIDv7 } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  announcedLength,
  Call,
  CarpoolError,
  isBodiless,
  monotonicClock,
  type AnswerSink,
  type CallChain,
  type CallInit,
  type ErrorCode,
  type Invoke,
  type ResponseHead,
} from '@carpool/core'
import { ClientAnswer } from './answer-stream.ts'
import type { Reservation } from './byte-budget.ts'
import type { GatewayLimits } from './gateway-limits.ts'
import type { ClientConnection } from './hardening/connections.ts'
import type { LingeringClose, WriteStallOptions, WriteStallTimeout } from './hardening/slow-clients.ts'
import { stopReading } from './hardening/stop-reading.ts'
import { hasBody, wayOfBody, type BodyReader } from './request-body.ts'
import { checkRequest, decodeRequest, endsReading, expectsContinue } from './request.ts'
import { writeError, writeHeadAlone, writeResult, writeStreamHead, type Refusal } from './response-encoder.ts'

/**
 * What a gateway does with requests: it serves them; or it serves them and closes their connections, because it shuts down; or it
 * refuses them with `draining`, because its time is over.
 */
export type GatewayPhase = 'open' | 'closing' | 'closed'

export interface CallHandlerOptions {
  readonly invoke: Invoke
  readonly limits: GatewayLimits
  readonly phase: () => GatewayPhase
  readonly onFault: (error: CarpoolError) => void
  readonly onRefused: (code: ErrorCode) => void
  readonly chainOf: (header: string | string[] | undefined) => CallChain
  /** Whose function it is; '' if it is nobody's. */
  readonly ownerOf: (functionName: string) => string
  readonly random: () => number
  /** What is known of a client's connection; undefined if it is closed or was refused. */
  readonly connectionOf: (socket: Socket) => ClientConnection | undefined
  readonly bodies: BodyReader
  /** For answers that stream. */
  readonly stall: WriteStallOptions
  /** For those that are whole. */
  readonly writeStall: WriteStallTimeout
  readonly lingering: LingeringClose
}

/**
 * Requests of one connection that may be pending at the same time: their answers are held in memory until the client has read
 * them. The next one ends the connection: a thousand refusals in one turn of the event loop would hold up everybody else.
 */
const MAX_PIPELINED = 32
const HOPS_HEADER = 'x-carpool-hops'

/** A call that came as an HTTP request. */
class HttpCall extends Call {
  readonly connection: ClientConnection
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  /** What its body takes of the memory for clients. */
  reservation: Reservation | undefined = undefined
  /** It was given to `invoke`: a refusal from here on is on record, or is not the gateway's to count. */
  isInvoked = false
  /** Why its body broke off while it ran: what its client is told, if that can still be told anything. */
  brokenBy: CarpoolError | undefined = undefined
  /** The body of its answer, if that streams to the client. */
  streamed: ClientAnswer | undefined = undefined
  readonly #handler: CallHandler

  constructor(
    init: CallInit,
    { connection, incoming, response }: Pick<HttpCall, 'connection' | 'incoming' | 'response'>,
    handler: CallHandler,
  ) {
    super(init)
    this.connection = connection
    this.incoming = incoming
    this.response = response
    this.#handler = handler
  }

  override beginAnswer(head: ResponseHead, credit: (bytes: number) => void): AnswerSink {
    return this.#handler.beginAnswer(this, head, credit)
  }

  override end(error: CarpoolError | undefined): void {
    this.#handler.answer(this, error)
  }
}

/** Makes calls of requests, and answers them with the results or with why there was none. */
export class CallHandler {
  readonly #options: CallHandlerOptions

  constructor(options: CallHandlerOptions) {
    this.#options = options
  }

  /**
   * Checks a request as soon as it is there, before any that comes behind it: if it is refused, its connection ends, and nothing
   * behind it may be taken for a request.
   * @returns whether it is to be handled
   */
  receive(incoming: IncomingMessage, response: ServerResponse, nowMs: number): boolean {
    const connection = this.#options.connectionOf(incoming.socket)
    if (connection === undefined || !connection.receive(response, nowMs)) {
      stopReading(incoming.socket)
      return false
    }
    try {
      if (connection.pending >= MAX_PIPELINED) {
        throw new CarpoolError('too-many-requests', `A connection may have ${MAX_PIPELINED} requests waiting, not more.`)
      }
      checkRequest(incoming, this.#options.limits)
      return true
    } catch (cause) {
      const error = CarpoolError.from(cause)
      this.#options.onRefused(error.code)
      const close = (): void => this.#options.lingering.close(connection.socket)
      this.#refuse(connection, response, error, { id: randomUUIDv7(), queueMs: 0, isLast: true }, close)
      stopReading(connection.socket)
      return false
    }
  }

  /**
   * Makes a call of a request (1 in the table of ARCHITECTURE.md) and invokes it once its body is whole.
   * @param target the request target as it came
   * @param prefix what stands before the function's name in it
   */
  handle(incoming: IncomingMessage, response: ServerResponse, target: string, prefix: string): void {
    const { connectionOf, chainOf } = this.#options
    const connection = connectionOf(incoming.socket)
    if (connection === undefined) return
    const { functionName, head } = decodeRequest(incoming, target, prefix)
    const { hops, tree } = chainOf(incoming.headers[HOPS_HEADER])
    const call = new HttpCall(
      {
        id: randomUUIDv7(),
        functionName,
        trigger: 'http',
        head,
        hops,
        tree,
        startedAtMs: Date.now(),
        cameMs: monotonicClock(),
      },
      { connection, incoming, response },
      this,
    )
    connection.add(call)
    try {
      this.#checkCallable(functionName)
      if (hasBody(incoming)) return void this.#readBody(call)
      if (expectsContinue(incoming)) response.writeContinue()
    } catch (cause) {
      return this.answer(call, CarpoolError.from(cause))
    }
    this.#invoke(call)
  }

  async #readBody(call: HttpCall): Promise<void> {
    const { bodies, ownerOf } = this.#options
    const { connection, incoming, response, functionName, head } = call
    try {
      const way = ignoresBody(head.method) ? 'whole' : wayOfBody(incoming)
      if (way === 'stream') return this.#streamBody(call)
      if (way === 'stream-unless-whole' && !(await bodies.isWholeAtOnce(connection, incoming))) return this.#streamBody(call)
      const reservation = (call.reservation = bodies.reserve(connection, incoming))
      // Only now: a client must not send a body that is refused.
      if (expectsContinue(incoming)) response.writeContinue()
      const body = await bodies.read(connection, incoming, reservation, { owner: ownerOf(functionName), functionName })
      if (ignoresBody(head.method)) reservation.release()
      else call.body = body
    } catch (cause) {
      return this.answer(call, CarpoolError.from(cause))
    }
    this.#invoke(call)
  }

  #streamBody(call: HttpCall): void {
    call.upload = this.#options.bodies.stream(call, (error) => {
      call.brokenBy = error
      call.cancel()
    })
    this.#invoke(call)
  }

  #invoke(call: HttpCall): void {
    call.isInvoked = true
    this.#options.invoke(call)
  }

  /** The head of an answer has come, and its body streams behind it. Never throws, as {@link answer}. */
  beginAnswer(call: HttpCall, head: ResponseHead, credit: (bytes: number) => void): AnswerSink {
    const { id, connection, response, placedMs, cameMs } = call
    const lengthBytes = announcedLength(head.headers)
    call.streamed = new ClientAnswer(response, lengthBytes, credit, this.#options.stall)
    try {
      const isLast = this.#isLast(connection, response)
      if (!connection.socket.destroyed) writeStreamHead(response, head, { id, queueMs: placedMs - cameMs, lengthBytes, isLast })
      if (isLast) connection.refuseFurther()
    } catch (cause) {
      this.#options.onFault(CarpoolError.from(cause))
      connection.socket.destroy()
    }
    return call.streamed
  }

  /** A call has ended: answers it (8). Called once for each call; never throws, for it is called among those of others. */
  answer(call: HttpCall, error: CarpoolError | undefined): void {
    const { connection, streamed, brokenBy } = call
    connection.remove(call)
    call.reservation?.release()
    call.upload?.stop()
    try {
      if (streamed !== undefined) this.#endStreamed(call, streamed, error)
      else if (error !== undefined || brokenBy !== undefined) this.#writeRefusal(call, error ?? brokenBy!)
      else this.#write(call)
    } catch (cause) {
      this.#options.onFault(CarpoolError.from(cause))
      connection.socket.destroy()
    }
  }

  #endStreamed({ connection, response, result }: HttpCall, streamed: ClientAnswer, error: CarpoolError | undefined): void {
    if (error !== undefined || result?.outcome !== 'ok') return streamed.break()
    streamed.end(() => {
      const { writeStall } = this.#options
      const onFlushed = this.#closerOfUnread(connection, response)
      response.end(onFlushed)
      writeStall.watch(connection.socket, response, 0)
    })
  }

  #write({ connection, response, result, record, begun, head }: HttpCall): void {
    const { socket } = connection
    if (socket.destroyed || result === undefined || record === undefined) return
    const onFlushed = this.#closerOfUnread(connection, response)
    const isLast = onFlushed !== undefined || this.#isLast(connection, response)
    if (isLast) connection.refuseFurther()
    if (result.outcome !== 'ok') writeResult(response, result, record, isLast, onFlushed)
    else if (begun !== undefined && isBodiless(head.method, result.response.status)) {
      writeHeadAlone(response, result.response, record, isLast)
    } else writeResult(response, result, record, isLast, onFlushed)
    this.#options.writeStall.watch(socket, response, result.outcome === 'ok' ? result.response.body.length : 0)
  }

  /** What closes the connection behind an answer, if the rest of the request before it is not read. */
  #closerOfUnread(connection: ClientConnection, { req }: ServerResponse): (() => void) | undefined {
    if (req.complete || !hasBody(req)) return undefined
    connection.refuseFurther()
    return () => this.#options.lingering.close(connection.socket)
  }

  #writeRefusal({ id, connection, response, isInvoked, cameMs }: HttpCall, error: CarpoolError): void {
    if (!isInvoked && !connection.socket.destroyed) this.#options.onRefused(error.code)
    const isLast = this.#isLast(connection, response)
    this.#refuse(connection, response, error, { id, queueMs: monotonicClock() - cameMs, isLast })
  }

  /** @throws CarpoolError if the call is refused, whatever its body is */
  #checkCallable(functionName: string): void {
    if (this.#options.phase() === 'closed') {
      throw new CarpoolError('draining', 'The server is shutting down; another one may take its place.')
    }
    if (functionName === '') throw new CarpoolError('route-not-found', 'Functions answer at /<name>/ and below.')
  }

  /** Whether the connection ends behind the answer. Requests that were sent behind it would be lost with the connection. */
  #isLast(connection: ClientConnection, response: ServerResponse): boolean {
    return (this.#options.phase() !== 'open' || endsReading(response.req)) && connection.isNewest(response)
  }

  /** @param onFlushed closes the connection if something behind the answer is not read */
  #refuse(
    connection: ClientConnection,
    response: ServerResponse,
    error: CarpoolError,
    refusal: Refusal,
    onFlushed = this.#closerOfUnread(connection, response),
  ): void {
    const { onFault, random, writeStall } = this.#options
    const { socket } = connection
    if (error.code === 'internal') onFault(error)
    if (response.headersSent) return void response.destroy()
    if (socket.destroyed) return
    if (refusal.isLast) connection.refuseFurther()
    writeError(response, error, { ...refusal, random, onFlushed })
    writeStall.watch(socket, response, 0)
  }
}

/** Whether a body has no meaning with the method (RFC 9110, sections 9.3.1 and 9.3.2): it is read, and goes no further. */
function ignoresBody(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}
