/** What Node.js or Fastify refuse before a route is reached, as errors of ours. */
import { randomUUIDv7 } from 'node:crypto'
import { CarpoolError, PROBLEM_CONTENT_TYPE, problemOfError, retryAfterSeconds } from '@carpool/core'
import { STATUS_CODES } from '@carpool/core/node-http'
import type { GatewayLimits } from './gateway-limits.ts'
import { INVOCATION_HEADER } from './response-encoder.ts'

/** The default of Node.js. */
const MAX_HEADER_BYTES = 16 * 1024

/**
 * What is wrong with a request that the parser could not read.
 * @returns undefined if the connection itself broke, so that there is nobody to answer
 */
export function errorOfClient(
  { code }: { readonly code?: string },
  limits: Partial<Pick<GatewayLimits, 'maxHeaderBytes' | 'headerTimeoutMs'>> = {},
): CarpoolError | undefined {
  const { maxHeaderBytes = MAX_HEADER_BYTES, headerTimeoutMs } = limits
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new CarpoolError('headers-too-large', `The limit for all request headers together is ${maxHeaderBytes} bytes.`)
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new CarpoolError('bad-request', `The limit for all chunk extensions together is ${MAX_HEADER_BYTES} bytes.`)
    case 'ERR_HTTP_REQUEST_TIMEOUT': {
      const limit = headerTimeoutMs === undefined ? '' : ` within ${headerTimeoutMs} ms`
      return new CarpoolError('request-timeout', `The request headers did not arrive${limit}.`)
    }
  }
  return code?.startsWith('HPE_') ? new CarpoolError('bad-request', 'The request is not valid HTTP.') : undefined
}

/** A whole answer, for a connection on which no request can be answered any more. */
export function refusalText(error: CarpoolError, random: () => number = Math.random): string {
  const body = JSON.stringify(problemOfError(error))
  const retryAfter = retryAfterSeconds(error.code, random)
  const head = [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    `x-carpool-error: ${error.code}`,
    `${INVOCATION_HEADER}: ${randomUUIDv7()}`,
    ...(retryAfter === undefined ? [] : [`retry-after: ${retryAfter}`]),
    `content-type: ${PROBLEM_CONTENT_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

/**
 * Turns what Fastify or Node.js refuses before a route is reached into an error of ours.
 * @param limitBytes the body limit in force, for the message
 */
export function errorOfFastify(cause: unknown, limitBytes: number): CarpoolError {
  if (cause instanceof CarpoolError) return cause
  const { code, statusCode, validation, message } = cause as {
    code?: string
    statusCode?: number
    validation?: unknown
    message?: string
  }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new CarpoolError('body-too-large', `The limit for a request body is ${limitBytes} bytes.`, { cause })
  }
  // A message of the schema validator speaks of the request alone; other messages may name what is inside.
  if (validation !== undefined) return new CarpoolError('bad-request', message ?? 'The request is not valid.', { cause })
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new CarpoolError('bad-request', 'The request could not be read.', { cause })
  }
  return CarpoolError.from(cause)
}
