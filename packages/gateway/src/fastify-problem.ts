import { CarpoolError } from '@carpool/core'

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
