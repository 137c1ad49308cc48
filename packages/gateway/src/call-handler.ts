import { randomUUIDv7 } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Cancellation, CarpoolError, type ErrorCode, type Invoke } from '@carpool/core'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { BodyReader } from './body-reader.ts'
import type { Holding } from './byte-budget.ts'
import { checkRequest, endsReading, expectsContinue } from './check-request.ts'
import type { ClientConnection } from './client-connection.ts'
import type { Connections } from './connections.ts'
import type { GatewayPhase } from './drain.ts'
import type { GatewayLimits } from './gateway-limits.ts'
import type { Lingering } from './lingering.ts'
import { hasBody } from './request-body.ts'
import { decodeRequest } from './request-decoder.ts'
import { writeError, writeFinished, type Refusal } from './response-encoder.ts'
import type { UnreadAnswers } from './unread-answers.ts'

export interface CallHandlerOptions {
  readonly invoke: Invoke
  readonly limits: GatewayLimits
  readonly phase: () => GatewayPhase
  readonly onFault: (error: CarpoolError) => void
  readonly onRefused: (code: ErrorCode) => void
  readonly hopsOf: (header: string | string[] | undefined) => number
  readonly random: () => number
  readonly connections: Connections
  readonly bodies: BodyReader
  readonly unread: UnreadAnswers
  readonly lingering: Lingering
  /** How long a request waited for its turn, in ms. */
  readonly waitedMs: (request: IncomingMessage) => number
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
   */
  check(connection: ClientConnection, incoming: IncomingMessage, response: ServerResponse): boolean {
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

  /** Never rejects. */
  async handle({ raw: incoming, originalUrl }: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { invoke, bodies, unread, connections, hopsOf, waitedMs } = this.#options
    const { raw: response } = reply
    const connection = connections.of(incoming.socket)
    if (connection === undefined) return
    const id = randomUUIDv7()
    const cancellation = new Cancellation()
    const waiting = connection.watch(cancellation, response)
    let isInvoked = false
    let holding: Holding | undefined
    try {
      const { functionName, request } = decodeRequest(incoming, originalUrl)
      this.#checkPlace(functionName, waiting)
      if (hasBody(incoming)) holding = bodies.reserve(connection, incoming)
      // Before this the client is not told to go on with a body that is refused.
      if (expectsContinue(incoming)) response.writeContinue()
      const bytes = holding === undefined ? undefined : await bodies.read(connection, incoming, holding, functionName)
      const isDropped = hasNoUse(request.method)
      if (isDropped) holding?.release()
      const hops = hopsOf(incoming.headers[HOPS_HEADER])
      isInvoked = true
      const finished = await invoke({
        id,
        functionName,
        trigger: 'http',
        request: bytes === undefined || isDropped ? request : { ...request, body: bytes },
        cancellation,
        waitedMs: reply.elapsedTime + waitedMs(incoming),
        ...(hops > 0 && { hops }),
      })
      if (incoming.socket.destroyed) return
      const isLast = this.#isLast(connection, response)
      writeFinished(response, finished, isLast)
      if (isLast) connection.end()
      const { result } = finished
      unread.watch(incoming.socket, response, result.outcome === 'ok' ? result.response.body.length : 0)
    } catch (cause) {
      const error = CarpoolError.from(cause)
      // What is refused from here on is in a record, or is not where it was sent.
      if (!isInvoked && !incoming.socket.destroyed) this.#options.onRefused(error.code)
      const isLast = this.#isLast(connection, response)
      this.#refuse(connection, response, error, { id, queueMs: reply.elapsedTime, isLast })
    } finally {
      connection.unwatch(cancellation)
      holding?.release()
    }
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
