import { randomUUIDv7 } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { Cancellation, CarpoolError, PROBLEM_CONTENT_TYPE, problemOfError, type Invoke } from '@carpool/core'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { Departures } from './departures.ts'
import type { GatewayPhase } from './drain.ts'
import { errorOfFastify } from './fastify-problem.ts'
import { GatewayServer } from './gateway-server.ts'
import { decodeRequest } from './request-decoder.ts'
import { INVOCATION_HEADER, writeError, writeFinished } from './response-encoder.ts'

export interface GatewayOptions {
  readonly invoke: Invoke
  /** Largest request body, in bytes. */
  readonly maxBodyBytes: number
  readonly phase: () => GatewayPhase
  /** Told of faults of ours: never of what a caller or a function did. */
  readonly onFault: (error: CarpoolError) => void
  /** Spreads what callers are told of when to come back; default: `Math.random`. */
  readonly random?: () => number
}

/** Requests of one connection that may wait at the same time: their answers are held in memory until the client has read them. */
const MAX_PIPELINED = 32

/** The data plane: HTTP in, an invocation, HTTP out. It decides nothing. */
export function createGateway({ invoke, maxBodyBytes, phase, onFault, random = Math.random }: GatewayOptions): FastifyInstance {
  const server = new GatewayServer()
  const gateway = Fastify({
    serverFactory: (handler) => server.create(handler),
    bodyLimit: Math.max(maxBodyBytes, 1),
    forceCloseConnections: 'idle',
    // Refused below, in our own form.
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    frameworkErrors: (cause, _request, reply) => refuse(reply, cause, randomUUIDv7()),
    // The path belongs to the function from its name on, so the router has nothing to find in it, nor to refuse.
    rewriteUrl: () => '/',
  })

  const refuse = (reply: FastifyReply, cause: unknown, id: string, isLast = phase() !== 'open'): void => {
    const error = errorOfFastify(cause, maxBodyBytes)
    if (error.code === 'internal') onFault(error)
    reply.hijack()
    if (reply.raw.headersSent) return void reply.raw.destroy()
    if (!reply.raw.destroyed) writeError(reply.raw, error, id, { queueMs: reply.elapsedTime, isLast, random })
  }

  const departures = new Departures()
  const handle = (request: FastifyRequest, reply: FastifyReply): void => {
    reply.hijack()
    void answer(request, reply)
  }
  const answer = async ({ raw: incoming, originalUrl, body }: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { socket } = incoming
    const id = randomUUIDv7()
    const cancellation = new Cancellation()
    const onConnection = departures.watch(socket, cancellation)
    // Requests that were sent behind this one would be lost with the connection.
    const isLast = (): boolean => phase() !== 'open' && departures.isNewest(socket, cancellation)
    try {
      if (onConnection > MAX_PIPELINED) {
        throw new CarpoolError('too-many-requests', `A connection may have ${MAX_PIPELINED} requests waiting, not more.`)
      }
      if (phase() === 'closed') throw new CarpoolError('draining', 'The server is shutting down; another one may take its place.')
      const { functionName, request } = decodeRequest(incoming, originalUrl, body as Buffer | undefined)
      if (functionName === '') throw nothingHere()
      const finished = await invoke({
        id,
        functionName,
        trigger: 'http',
        request,
        cancellation,
        waitedMs: reply.elapsedTime + server.waitedMs(incoming),
      })
      if (!socket.destroyed) writeFinished(reply.raw, finished, isLast())
    } catch (cause) {
      refuse(reply, cause, id, isLast())
    } finally {
      departures.unwatch(socket, cancellation)
    }
  }

  // Bodies belong to the function: every type passes through as bytes.
  gateway.removeAllContentTypeParsers()
  gateway.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  gateway.setErrorHandler((cause, _request, reply) => refuse(reply, cause, randomUUIDv7()))
  gateway.setNotFoundHandler((_request, reply) => refuse(reply, nothingHere(), randomUUIDv7()))
  gateway.all('/', handle)
  return gateway
}

function nothingHere(): CarpoolError {
  return new CarpoolError('route-not-found', 'Functions answer at /<name>/ and below.')
}

/** Answers what is no HTTP, or too much of it, and closes the connection: the parser cannot go on. */
export function answerClientError(cause: Error & { code?: string }, socket: Socket): void {
  if (cause.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const error =
    cause.code === 'HPE_HEADER_OVERFLOW'
      ? new CarpoolError('headers-too-large', 'The limit for all request headers together is 16384 bytes.')
      : new CarpoolError('bad-request', 'The request is not valid HTTP.')
  const body = JSON.stringify(problemOfError(error))
  socket.end(
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\nx-carpool-error: ${error.code}\r\n${INVOCATION_HEADER}: ${randomUUIDv7()}\r\ncontent-type: ${PROBLEM_CONTENT_TYPE}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}
