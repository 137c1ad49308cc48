import type { Socket } from 'node:net'
import { Cancellation, CarpoolError, PROBLEM_CONTENT_TYPE, problemOfError, type Invoke } from '@carpool/core'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { errorOfFastify } from './fastify-problem.ts'
import { decodeRequest } from './request-decoder.ts'
import { writeFinished, writeProblem } from './response-encoder.ts'

export interface GatewayOptions {
  readonly invoke: Invoke
  /** Largest request body, in bytes. */
  readonly maxBodyBytes: number
  /** Told of faults of ours: never of what a caller or a function did. */
  readonly onFault: (error: CarpoolError) => void
}

/** The data plane: HTTP in, an invocation, HTTP out. It decides nothing. */
export function createGateway({ invoke, maxBodyBytes, onFault }: GatewayOptions): FastifyInstance {
  const gateway = Fastify({
    bodyLimit: Math.max(maxBodyBytes, 1),
    forceCloseConnections: 'idle',
    clientErrorHandler: answerClientError,
    frameworkErrors: (cause, _request, reply) => refuse(reply, cause),
    routerOptions: { ignoreTrailingSlash: false },
  })

  const refuse = (reply: FastifyReply, cause: unknown): void => {
    const error = errorOfFastify(cause, maxBodyBytes)
    if (error.code === 'internal') onFault(error)
    reply.hijack()
    if (!reply.raw.headersSent && !reply.raw.destroyed) writeProblem(reply.raw, problemOfError(error))
  }

  const handle = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    reply.hijack()
    const { raw } = reply
    const cancellation = new Cancellation()
    raw.once('close', () => {
      if (!raw.writableEnded) cancellation.cancel()
    })
    try {
      const { functionName, request: decoded } = decodeRequest(request.raw, request.body as Buffer | undefined)
      if (functionName === '') throw nothingHere()
      const finished = await invoke({ functionName, trigger: 'http', request: decoded, cancellation })
      if (!raw.destroyed) writeFinished(raw, finished)
    } catch (cause) {
      refuse(reply, cause)
    }
  }

  // Bodies belong to the function: every type passes through as bytes.
  gateway.removeAllContentTypeParsers()
  gateway.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  gateway.setErrorHandler((cause, _request, reply) => refuse(reply, cause))
  gateway.setNotFoundHandler((_request, reply) => refuse(reply, nothingHere()))
  gateway.all('/:name', handle)
  gateway.all('/:name/*', handle)
  return gateway
}

function nothingHere(): CarpoolError {
  return new CarpoolError('route-not-found', 'Functions answer at /<name>/ and below.')
}

/** Answers what is no HTTP, or too much of it, and closes the connection: the parser cannot go on. */
function answerClientError(cause: Error & { code?: string }, socket: Socket): void {
  if (cause.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const error =
    cause.code === 'HPE_HEADER_OVERFLOW'
      ? new CarpoolError('headers-too-large', 'The limit for all request headers together is 16384 bytes.')
      : new CarpoolError('bad-request', 'The request is not valid HTTP.')
  const body = JSON.stringify(problemOfError(error))
  socket.end(
    `HTTP/1.1 ${error.status} ${error.code}\r\ncontent-type: ${PROBLEM_CONTENT_TYPE}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}
