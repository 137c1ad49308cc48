import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import {
  ERRORS,
  PROBLEM_CONTENT_TYPE,
  problemOfError,
  problemOfOutcome,
  type CarpoolError,
  type FinishedInvocation,
  type HttpResponse,
  type Problem,
} from '@carpool/core'
import { isReserved } from './reserved-headers.ts'

const INVOCATION_HEADER = 'x-carpool-invocation'
/** Up to this size, copying a body into one buffer with the head costs less than a second buffer to write. */
const MAX_JOINED_BYTES = 16 * 1024
const RETRY_AFTER_SECONDS = '1'

/** Answers with what came of an invocation. */
export function writeFinished(raw: ServerResponse, { id, result }: FinishedInvocation): void {
  if (result.outcome !== 'ok')
    return writeProblem(raw, problemOfOutcome(result.outcome, result.detail, id), { [INVOCATION_HEADER]: id })
  writeResponse(raw, result.response, id)
}

function writeResponse(raw: ServerResponse, { status, headers, body }: HttpResponse, id: string): void {
  const flat = [INVOCATION_HEADER, id]
  for (const [name, value] of headers) {
    // The length follows from the body.
    if (!isReserved(name) && name !== 'content-length') flat.push(name, value)
  }
  if (status !== 204 && status !== 304) flat.push('content-length', String(body.length))
  raw.writeHead(status, flat)
  // Node.js sends head and body in one write if the body is a string, else in two; latin1 keeps every byte as it is.
  if (body.length > MAX_JOINED_BYTES) raw.end(body)
  else raw.end(Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1'), 'latin1')
}

/** Answers with a refusal or a fault of ours. */
export function writeError(raw: ServerResponse, error: CarpoolError): void {
  writeProblem(raw, problemOfError(error), ERRORS[error.code].retryable ? { 'retry-after': RETRY_AFTER_SECONDS } : {})
}

function writeProblem(raw: ServerResponse, problem: Problem, headers: OutgoingHttpHeaders): void {
  const body = Buffer.from(JSON.stringify(problem))
  raw.writeHead(problem.status, {
    'content-type': PROBLEM_CONTENT_TYPE,
    'content-length': body.length,
    'x-carpool-error': problem.code,
    ...headers,
  })
  raw.end(body)
}
