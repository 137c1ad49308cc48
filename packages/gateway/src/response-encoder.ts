import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import {
  PROBLEM_CONTENT_TYPE,
  problemOfError,
  problemOfOutcome,
  retryAfterSeconds,
  type CarpoolError,
  type HttpResponse,
  type InvocationResult,
  type InvocationRecord,
  type Problem,
} from '@carpool/core'
import { isReservedInResponse } from './reserved-headers.ts'
import { serverTiming } from './server-timing.ts'

export const INVOCATION_HEADER = 'x-carpool-invocation'
const TIMING_HEADER = 'server-timing'
/** Up to this size, copying a body into one buffer with the head costs less than a second buffer to write. */
const MAX_JOINED_BYTES = 16 * 1024
/** A larger body is written in pieces of this size, so that it shows whether its client takes any of it. */
const PIECE_BYTES = 64 * 1024
const CLOSE = { connection: 'close' }
const NO_BYTES = new Uint8Array(0)

/** Answers with what came of an invocation. @param isLast closes the connection behind the answer */
export function writeResult(raw: ServerResponse, result: InvocationResult, record: InvocationRecord, isLast: boolean): void {
  if (result.outcome === 'ok') return writeResponse(raw, result.response, record, isLast)
  writeProblem(raw, problemOfOutcome(result.outcome, result.detail, record.id), {
    [INVOCATION_HEADER]: record.id,
    [TIMING_HEADER]: serverTiming(record),
    ...(isLast && CLOSE),
  })
}

/** What the function says is checked, its head when it comes from the host; nothing in it can move the end of the response. */
function writeResponse(raw: ServerResponse, response: HttpResponse, record: InvocationRecord, isLast: boolean): void {
  const { status, headers } = response
  // Resets the client's form, and so may hold nothing (RFC 9110, section 15.3.6).
  const body = status === 205 ? NO_BYTES : response.body
  // What the function says of its own time stands beside what we say.
  const flat = [INVOCATION_HEADER, record.id, TIMING_HEADER, serverTiming(record)]
  for (const [name, value] of headers) {
    if (!isReservedInResponse(name)) flat.push(name, value)
  }
  if (status !== 204 && status !== 304) flat.push('content-length', String(body.length))
  if (isLast) flat.push('connection', 'close')
  raw.writeHead(status, flat)
  // Node.js sends head and body in one write if the body is a string, else in two; latin1 keeps every byte as it is.
  if (body.length <= MAX_JOINED_BYTES) {
    raw.end(Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1'), 'latin1')
  } else if (body.length <= PIECE_BYTES || raw.req.method === 'HEAD') raw.end(body)
  else writeInPieces(raw, body)
}

function writeInPieces(raw: ServerResponse, body: Uint8Array): void {
  let written = 0
  const writeOn = (): void => {
    while (written < body.length) {
      const piece = body.subarray(written, written + PIECE_BYTES)
      written += piece.length
      if (!raw.write(piece) && written < body.length) return void raw.once('drain', writeOn)
    }
    raw.end()
  }
  writeOn()
}

export interface Refusal {
  /** Under which the caller may ask about it. */
  readonly id: string
  /** How long the caller has waited for it, in ms. */
  readonly queueMs: number
  /** Closes the connection behind the answer. */
  readonly isLast: boolean
}

interface RefusalOptions extends Refusal {
  readonly random: () => number
  /** Of the request, something is still to come that is not read: called when the answer has left, and has to close the connection. */
  readonly cut?: (() => void) | undefined
}

/** Answers with a refusal or a fault of ours. */
export function writeError(raw: ServerResponse, error: CarpoolError, options: RefusalOptions): void {
  const { id, queueMs, isLast, random, cut } = options
  const retryAfter = retryAfterSeconds(error.code, random)
  const headers = {
    [INVOCATION_HEADER]: id,
    [TIMING_HEADER]: `queue;dur=${queueMs.toFixed(3)}`,
    ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
    ...((isLast || cut !== undefined) && CLOSE),
  }
  writeProblem(raw, problemOfError(error), headers, cut)
}

function writeProblem(raw: ServerResponse, problem: Problem, headers: OutgoingHttpHeaders, cut?: () => void): void {
  const body = Buffer.from(JSON.stringify(problem))
  raw.writeHead(problem.status, {
    'content-type': PROBLEM_CONTENT_TYPE,
    'content-length': body.length,
    'x-carpool-error': problem.code,
    ...headers,
  })
  // A response that is ended closes its connection at once, with what is unread. There is nothing to write in answer to HEAD but the head.
  if (cut === undefined || raw.req.method === 'HEAD') raw.end(body)
  else raw.write(body, cut)
}
