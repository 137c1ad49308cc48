import { randomUUIDv7 } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { CarpoolError, monotonicClock, type ErrorCode, type Invoke } from '@carpool/core'
import type { Socket } from 'node:net'
import type { BodyReader } from './body-reader.ts'
import { checkRequest, endsReading, expectsContinue } from './check-request.ts'
import type { ClientConnection } from './client-connection.ts'
import type { GatewayPhase } from './drain.ts'
import type { GatewayLimits } from './gateway-limits.ts'
import { HttpCall } from './http-call.ts'
import type { Lingering } from './lingering.ts'
import { hasBody } from './request-body.ts'
import { decodeRequest } from './request-decoder.ts'
import { writeError, writeResult, type Refusal } from './response-encoder.ts'
import type { UnreadAnswers } from './unread-answers.ts'

export interface CallHandlerOptions {
  readonly invoke: Invoke
  readonly limits: GatewayLimits
  readonly phase: () => GatewayPhase
  readonly onFault: (error: CarpoolError) => void
  readonly onRefused: (code: ErrorCode) => void
  readonly hopsOf: (header: string | string[] | undefined) => number
  readonly random: () => number
  /** What is known of a client's connection; undefined if it is closed or was refused. */
  readonly connectionOf: (socket: Socket) => ClientConnection | undefined
  readonly bodies: BodyReader
  readonly unread: UnreadAnswers
  readonly lingering: Lingering
}

/** Requests of one connection that may wait at the same time: their answers are held in memory until the client has read them. */
const MAX_PIPELINED = 32
const HOPS_HEADER = 'x-carpool-hops'

/** Answers requests: each with what came of its invocation, or with why there was none. */
export class CallHandler {
  readonly #options: CallHandlerOptions

  constructor(options: CallHandlerOptions) {
    this.#options = options
  }

  /**
   * Looks at a request as soon as it is there, before any that comes behind it: if it is refused, its connection ends, and nothing behind it
   * may be taken for a request.
   * @returns whether it is to be handled
   */
  arrived(incoming: IncomingMessage, response: ServerResponse, nowMs: number): boolean {
    const connection = this.#options.connectionOf(incoming.socket)
    if (connection === undefined || !connection.arrived(response, nowMs)) return false
    try {
      checkRequest(incoming, this.#options.limits)
      return true
    } catch (cause) {
      const error = CarpoolError.from(cause)
      this.#options.onRefused(error.code)
      this.#refuse(connection, response, error, { id: randomUUIDv7(), queueMs: 0, isLast: true })
      return false
    }
  }

  /**
   * Makes a call of a request (1 in the table of ARCHITECTURE.md) and hands it on once its body is whole.
   * @param target the request target as it came
   * @param prefix what stands before the function's name in it
   */
  handle(incoming: IncomingMessage, response: ServerResponse, target: string, prefix: string): void {
    const { connectionOf, hopsOf } = this.#options
    const connection = connectionOf(incoming.socket)
    if (connection === undefined) return
    const { functionName, head } = decodeRequest(incoming, target, prefix)
    const call = new HttpCall(
      {
        id: randomUUIDv7(),
        functionName,
        trigger: 'http',
        head,
        hops: hopsOf(incoming.headers[HOPS_HEADER]),
        startedAtMs: Date.now(),
        cameMs: monotonicClock(),
      },
      { connection, incoming, response },
      this,
    )
    const waiting = connection.waits(call)
    try {
      this.#checkPlace(functionName, waiting)
      if (hasBody(incoming)) return void this.#readBody(call)
      if (expectsContinue(incoming)) response.writeContinue()
    } catch (cause) {
      return this.answer(call, CarpoolError.from(cause))
    }
    this.#invoke(call)
  }

  async #readBody(call: HttpCall): Promise<void> {
    const { bodies } = this.#options
    const { connection, incoming, response, functionName, head } = call
    try {
      const holding = (call.holding = bodies.reserve(connection, incoming))
      // Before this the client is not told to go on with a body that is refused.
      if (expectsContinue(incoming)) response.writeContinue()
      const body = await bodies.read(connection, incoming, holding, functionName)
      if (hasNoUse(head.method)) holding.release()
      else call.body = body
    } catch (cause) {
      return this.answer(call, CarpoolError.from(cause))
    }
    this.#invoke(call)
  }

  #invoke(call: HttpCall): void {
    call.isInvoked = true
    this.#options.invoke(call)
  }

  /** A call has ended: its client is told (8). Called once for each call; never throws, for it is called among those of others. */
  answer(call: HttpCall, error: CarpoolError | undefined): void {
    const { connection } = call
    connection.answered(call)
    call.holding?.release()
    try {
      if (error === undefined) this.#write(call)
      else this.#writeRefusal(call, error)
    } catch (cause) {
      this.#options.onFault(CarpoolError.from(cause))
      connection.socket.destroy()
    }
  }

  #write({ connection, response, result, record }: HttpCall): void {
    const { socket } = connection
    if (socket.destroyed || result === undefined || record === undefined) return
    const isLast = this.#isLast(connection, response)
    writeResult(response, result, record, isLast)
    if (isLast) connection.end()
    this.#options.unread.watch(socket, response, result.outcome === 'ok' ? result.response.body.length : 0)
  }

  #writeRefusal({ id, connection, response, isInvoked, cameMs }: HttpCall, error: CarpoolError): void {
    if (!isInvoked && !connection.socket.destroyed) this.#options.onRefused(error.code)
    const isLast = this.#isLast(connection, response)
    this.#refuse(connection, response, error, { id, queueMs: monotonicClock() - cameMs, isLast })
  }

  /** @throws CarpoolError if the call has no place here, whatever its body is */
  #checkPlace(functionName: string, waiting: number): void {
    if (waiting > MAX_PIPELINED) {
      throw new CarpoolError('too-many-requests', `A connection may have ${MAX_PIPELINED} requests waiting, not more.`)
    }
    if (this.#options.phase() === 'closed') {
      throw new CarpoolError('draining', 'The server is shutting down; another one may take its place.')
    }
    if (functionName === '') throw new CarpoolError('route-not-found', 'Functions answer at /<name>/ and below.')
  }

  /** Whether the connection ends behind the answer. Requests that were sent behind it would be lost with the connection. */
  #isLast(connection: ClientConnection, response: ServerResponse): boolean {
    return (this.#options.phase() !== 'open' || endsReading(response.req)) && connection.isNewest(response)
  }

  #refuse(connection: ClientConnection, response: ServerResponse, error: CarpoolError, refusal: Refusal): void {
    const { onFault, random, lingering } = this.#options
    const { socket } = connection
    if (error.code === 'internal') onFault(error)
    if (response.headersSent) return void response.destroy()
    if (socket.destroyed) return
    const isCut = !response.req.complete && hasBody(response.req)
    if (refusal.isLast || isCut) connection.end()
    const cut = isCut ? () => lingering.close(socket) : undefined
    writeError(response, error, { ...refusal, random, cut })
  }
}

/** Whether what comes as a body with the method has no meaning (RFC 9110, sections 9.3.1 and 9.3.2): it is read, and goes no further. */
function hasNoUse(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}
