import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import {
  PROBLEM_CONTENT_TYPE,
  problemOfError,
  problemOfOutcome,
  retryAfterSeconds,
  type CarpoolError,
  type FinishedInvocation,
  type HttpResponse,
  type InvocationRecord,
  type Problem,
} from '@carpool/core'
import { isReserved } from './reserved-headers.ts'
import { serverTiming } from './server-timing.ts'

export const INVOCATION_HEADER = 'x-carpool-invocation'
const TIMING_HEADER = 'server-timing'
/** Up to this size, copying a body into one buffer with the head costs less than a second buffer to write. */
const MAX_JOINED_BYTES = 16 * 1024
const CLOSE = { connection: 'close' }

/** Answers with what came of an invocation. @param isLast closes the connection behind the answer */
export function writeFinished(raw: ServerResponse, { result, record }: FinishedInvocation, isLast: boolean): void {
  if (result.outcome === 'ok') return writeResponse(raw, result.response, record, isLast)
  writeProblem(raw, problemOfOutcome(result.outcome, result.detail, record.id), {
    [INVOCATION_HEADER]: record.id,
    [TIMING_HEADER]: serverTiming(record),
    ...(isLast && CLOSE),
  })
}

function writeResponse(
  raw: ServerResponse,
  { status, headers, body }: HttpResponse,
  record: InvocationRecord,
  isLast: boolean,
): void {
  // What the function says of its own time stands beside what we say.
  const flat = [INVOCATION_HEADER, record.id, TIMING_HEADER, serverTiming(record)]
  for (const [name, value] of headers) {
    // The length follows from the body.
    if (!isReserved(name) && name !== 'content-length') flat.push(name, value)
  }
  if (status !== 204 && status !== 304) flat.push('content-length', String(body.length))
  if (isLast) flat.push('connection', 'close')
  raw.writeHead(status, flat)
  // Node.js sends head and body in one write if the body is a string, else in two; latin1 keeps every byte as it is.
  if (body.length > MAX_JOINED_BYTES) raw.end(body)
  else raw.end(Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1'), 'latin1')
}

interface RefusalOptions {
  /** How long the caller has waited for it, in ms. */
  readonly queueMs: number
  /** Closes the connection behind the answer. */
  readonly isLast: boolean
  readonly random: () => number
}

/** Answers with a refusal or a fault of ours. */
export function writeError(raw: ServerResponse, error: CarpoolError, id: string, options: RefusalOptions): void {
  const retryAfter = retryAfterSeconds(error.code, options.random)
  writeProblem(raw, problemOfError(error), {
    [INVOCATION_HEADER]: id,
    [TIMING_HEADER]: `queue;dur=${options.queueMs.toFixed(3)}`,
    ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
    ...(options.isLast && CLOSE),
  })
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
