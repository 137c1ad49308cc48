import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import {
  announcedLength,
  execUs,
  PROBLEM_CONTENT_TYPE,
  problemOfError,
  problemOfOutcome,
  retryAfterSeconds,
  type CarpoolError,
  type HttpResponse,
  type InvocationResult,
  type InvocationRecord,
  type Problem,
  type ResponseHead,
} from '@carpool/core'
import { isReserved } from './request.ts'
import { WholeResponse } from './whole-response.ts'

export const INVOCATION_HEADER = 'x-carpool-invocation'
const TIMING_HEADER = 'server-timing'
/** A metric of one of our names, behind any comma: not every reader knows of commas in quotes. */
const OWN_METRIC = /(?:^|,)\s*(?:queue|init|cpu|exec)\s*(?:[;,=]|$)/i
/** The length follows from the body; the other two are for the server to set. */
const SERVER_HEADERS: ReadonlySet<string> = new Set(['content-length', 'date', 'server'])
/** Up to this size, copying a body into one buffer with the head costs less than a second buffer to write. */
const MAX_JOINED_BYTES = 16 * 1024
/** A larger body is written in pieces of this size, so that it shows whether its client takes any of it. */
const PIECE_BYTES = 64 * 1024
const CLOSE = { connection: 'close' }
const NO_BYTES = new Uint8Array(0)

/**
 * Answers with the result of an invocation.
 * @param isLast closes the connection behind the answer
 * @param onFlushed given if the rest of the request is not read: called when the answer has left, and has to close the connection
 */
export function writeResult(
  raw: ServerResponse,
  result: InvocationResult,
  record: InvocationRecord,
  isLast: boolean,
  onFlushed?: () => void,
): void {
  if (result.outcome === 'ok') return writeResponse(raw, result.response, record, isLast, onFlushed)
  const headers = {
    [INVOCATION_HEADER]: record.id,
    [TIMING_HEADER]: serverTiming(record),
    ...(isLast && CLOSE),
  }
  writeProblem(raw, problemOfOutcome(result.outcome, result.detail, record.id), headers, onFlushed)
}

function writeResponse(
  raw: ServerResponse,
  response: HttpResponse,
  record: InvocationRecord,
  isLast: boolean,
  onFlushed: (() => void) | undefined,
): void {
  const { status } = response
  // 205 resets the client's form, and may have no content (RFC 9110, section 15.3.6).
  const body = status === 205 ? NO_BYTES : response.body
  const isSmall = body.length <= MAX_JOINED_BYTES
  if (isSmall && !isLast && onFlushed === undefined && raw instanceof WholeResponse && status !== 204 && status !== 304) {
    if (raw.writeWhole(status, linesOf(response, record, body.length), latin1(body))) return
  }
  const flat = headersOf(response, record.id, serverTiming(record))
  if (status !== 204 && status !== 304) flat.push('content-length', String(body.length))
  if (isLast) flat.push('connection', 'close')
  raw.writeHead(status, flat)
  if (onFlushed !== undefined) return writeUnended(raw, body, onFlushed)
  // Node.js sends head and body in one write if the body is a string, else in two.
  if (isSmall) raw.end(latin1(body), 'latin1')
  else if (body.length <= PIECE_BYTES || raw.req.method === 'HEAD') raw.end(body)
  else writeInPieces(raw, body)
}

/** What stands in the head of an answer that streams besides what the function gave. */
export interface StreamHead {
  /** Of the invocation. */
  readonly id: string
  readonly queueMs: number
  /** Of the body, if the function has said it. */
  readonly lengthBytes: number | undefined
  readonly isLast: boolean
}

/** Writes the head of an answer whose body streams behind it. What its call uses is not known yet. */
export function writeStreamHead(raw: ServerResponse, head: ResponseHead, { id, queueMs, lengthBytes, isLast }: StreamHead): void {
  const flat = headersOf(head, id, `queue;dur=${queueMs.toFixed(3)}`)
  if (lengthBytes !== undefined) flat.push('content-length', String(lengthBytes))
  if (isLast) flat.push('connection', 'close')
  raw.writeHead(head.status, flat)
  const { socket } = raw
  // What comes of the body in this turn leaves with the head.
  socket?.cork()
  raw.flushHeaders()
  if (socket !== null) process.nextTick(() => socket.uncork())
}

/** Answers HEAD, or without content, where the function streams a body all the same: nothing of that was wanted. */
export function writeHeadAlone(raw: ServerResponse, head: ResponseHead, record: InvocationRecord, isLast: boolean): void {
  const flat = headersOf(head, record.id, serverTiming(record))
  const lengthBytes = raw.req.method === 'HEAD' ? announcedLength(head.headers) : undefined
  if (lengthBytes !== undefined) flat.push('content-length', String(lengthBytes))
  if (isLast) flat.push('connection', 'close')
  raw.writeHead(head.status, flat)
  raw.end()
}

/** The head was checked when it came from the host, so nothing in it can move the end of the response. */
function headersOf({ headers }: ResponseHead, id: string, timing: string): string[] {
  const flat = [INVOCATION_HEADER, id, TIMING_HEADER, timing]
  for (const [name, value] of headers) if (isPassedOn(name, value)) flat.push(name, value)
  return flat
}

/** The same as lines, with the length of the body. */
function linesOf({ headers }: ResponseHead, record: InvocationRecord, bodyBytes: number): string {
  let lines = `${INVOCATION_HEADER}: ${record.id}\r\n${TIMING_HEADER}: ${serverTiming(record)}\r\n`
  for (const [name, value] of headers) if (isPassedOn(name, value)) lines += `${name}: ${value}\r\n`
  return `${lines}content-length: ${bodyBytes}\r\n`
}

function isPassedOn(name: string, value: string): boolean {
  if (SERVER_HEADERS.has(name) || isReserved(name)) return false
  // One of the function's own stands beside ours, unless it could pass for it.
  return name !== TIMING_HEADER || !OWN_METRIC.test(value)
}

/** Keeps every byte as it is. */
function latin1(body: Uint8Array): string {
  return Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1')
}

function writeInPieces(raw: ServerResponse, body: Uint8Array, onFlushed?: () => void): void {
  let written = 0
  // Not at `drain`, of which Node.js does not tell once another protocol was asked for behind the request.
  const writeOn = (error?: Error | null): void => {
    if (error) return
    const piece = body.subarray(written, written + PIECE_BYTES)
    written += piece.length
    if (written < body.length) raw.write(piece, writeOn)
    else if (onFlushed === undefined) raw.end(piece)
    else raw.write(piece, onFlushed)
  }
  writeOn()
}

/** A response that is ended closes its connection at once, with what is unread. */
function writeUnended(raw: ServerResponse, body: Uint8Array, onFlushed: () => void): void {
  if (body.length > 0) return writeInPieces(raw, body, onFlushed)
  raw.flushHeaders()
  // Behind other answers it has to wait for the connection.
  if (raw.socket === null) raw.once('socket', () => setImmediate(onFlushed))
  else onFlushed()
}

/**
 * Where the time of an invocation went, as the value of a `Server-Timing` header: `queue` until a host took it, `init` while an
 * isolate was made, `exec` in which the function ran or waited, and of that `cpu` in which it ran; in ms.
 * @see https://www.w3.org/TR/server-timing/
 */
function serverTiming(record: InvocationRecord): string {
  const { queueUs, initUs, cpuUs } = record
  return `queue;dur=${queueUs / 1000}, init;dur=${initUs / 1000}, cpu;dur=${cpuUs / 1000}, exec;dur=${execUs(record) / 1000}`
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
  /** Given if the rest of the request is not read: called when the answer has left, and has to close the connection. */
  readonly onFlushed?: (() => void) | undefined
}

/** Answers with a refusal or a fault of ours. */
export function writeError(raw: ServerResponse, error: CarpoolError, options: RefusalOptions): void {
  const { id, queueMs, isLast, random, onFlushed } = options
  const retryAfter = retryAfterSeconds(error.code, random)
  const headers = {
    [INVOCATION_HEADER]: id,
    [TIMING_HEADER]: `queue;dur=${queueMs.toFixed(3)}`,
    ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
    ...((isLast || onFlushed !== undefined) && CLOSE),
  }
  writeProblem(raw, problemOfError(error), headers, onFlushed)
}

function writeProblem(raw: ServerResponse, problem: Problem, headers: OutgoingHttpHeaders, onFlushed?: () => void): void {
  const body = Buffer.from(JSON.stringify(problem))
  raw.writeHead(problem.status, {
    'content-type': PROBLEM_CONTENT_TYPE,
    'content-length': body.length,
    'x-carpool-error': problem.code,
    ...headers,
  })
  // A response that is ended closes its connection at once, with what is unread. An answer to HEAD has no body to wait for.
  if (onFlushed === undefined || raw.req.method === 'HEAD') raw.end(body)
  else raw.write(body, onFlushed)
}
