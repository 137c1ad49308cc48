import { randomUUIDv7 } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import {
  AwaitedCall,
  CarpoolError,
  monotonicClock,
  problemOfOutcome,
  type FinishedInvocation,
  type InvokeRequest,
  type InvokeResponse,
} from '@carpool/core'
import { INVOKE_REQUEST, INVOKE_RESPONSE } from '@carpool/core/control-plane-schemas'
import { checkRequest, isReserved, namedByConnection } from '@carpool/gateway'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { ControlPlaneOptions } from './control-plane-options.ts'
import { addOperation, type Operation } from './operation.ts'
import { requireFunction } from './ownership.ts'

const INVOKE: Operation = {
  id: 'invokeFunction',
  method: 'POST',
  url: '/v1/functions/:name/invocations',
  summary: 'Call a function. What the call comes to is the answer, also if the function failed.',
  scope: 'invoke',
  body: INVOKE_REQUEST,
  response: { status: 200, description: 'What the call came to.', schema: INVOKE_RESPONSE },
  errors: [
    ...(['not-found', 'function-disabled', 'too-many-requests', 'loop-detected', 'saturated', 'no-host'] as const),
    ...(['ledger-unavailable', 'draining', 'data-unusable'] as const),
  ],
}

/** Headers and the rest of what is around a body: more than a request to the data plane may have. */
const AROUND_BODY_BYTES = 64 * 1024
/** What the schema of the body allows. */
const REQUEST_LIMITS = { maxHeaders: 201, maxUrlBytes: 16_384 }

/** Largest body of a call: base64 has four characters for three bytes. */
export function invokeBodyLimit({ maxBodyBytes }: Pick<ControlPlaneOptions, 'maxBodyBytes'>): number {
  return Math.ceil((maxBodyBytes * 4) / 3) + AROUND_BODY_BYTES
}

/** Call functions through the control plane. */
export function invokeRoutes(app: FastifyInstance, options: ControlPlaneOptions): void {
  const { registry, invoke, url, maxBodyBytes } = options
  addOperation<InvokeRequest>(app, { ...INVOKE, bodyLimitBytes: invokeBodyLimit(options) }, async (request, reply) => {
    const { method, path, bodyBase64 } = request.body
    const functionName = request.params['name'] ?? ''
    requireFunction(request, registry, functionName)
    const headers = withoutReserved(request.body.headers)
    checkAsOnDataPlane({ method, path, headers })
    const body = Buffer.from(bodyBase64, 'base64')
    if (body.length > maxBodyBytes)
      throw new CarpoolError('body-too-large', `The limit for a request body is ${maxBodyBytes} bytes.`)
    const call = new AwaitedCall({
      id: randomUUIDv7(),
      functionName,
      trigger: 'cli',
      head: { method, url: `${url()}${path}`, headers, clientIp: request.ip },
      hops: 0,
      startedAtMs: Date.now(),
      cameMs: monotonicClock(),
    })
    call.body = body
    const release = cancelOnLeave(call, reply)
    try {
      invoke(call)
      return invokeResponse(await call.ended)
    } finally {
      release()
    }
  })
}

function withoutReserved(headers: InvokeRequest['headers']): InvokeRequest['headers'] {
  const ofConnection = headers.filter(([name]) => name === 'connection').flatMap(([, value]) => [...namedByConnection(value)])
  return headers.filter(([name]) => !isReserved(name) && !ofConnection.includes(name))
}

/**
 * What the gateway refuses on the data plane does not get to functions through here either.
 * @throws CarpoolError `bad-request`
 */
function checkAsOnDataPlane({ method, path, headers }: Pick<InvokeRequest, 'method' | 'path' | 'headers'>): void {
  const hosts = headers.filter(([name]) => name === 'host').map(([, value]) => value)
  // Without one, the request is for the address of the data plane.
  const rawHeaders = [...headers.flat(), ...(hosts.length === 0 ? ['host', 'localhost'] : [])]
  const raw: Partial<IncomingMessage> = {
    httpVersion: '1.1',
    httpVersionMajor: 1,
    httpVersionMinor: 1,
    method,
    url: path,
    headers: { host: hosts[0] ?? 'localhost' },
    rawHeaders,
  }
  checkRequest(raw as IncomingMessage, REQUEST_LIMITS)
}

/** Cancels the call when the client leaves before its answer. @returns ends that */
function cancelOnLeave(call: AwaitedCall, { raw }: FastifyReply): () => void {
  const leave = (): void => call.cancel()
  raw.once('close', leave)
  // It may have left while its body was read.
  if (raw.destroyed) leave()
  return () => raw.off('close', leave)
}

function invokeResponse({ record: { id }, result }: FinishedInvocation): InvokeResponse {
  if (result.outcome === 'ok') {
    const { status, headers, body } = result.response
    return { invocationId: id, outcome: 'ok', status, headers, bodyBase64: Buffer.from(body).toString('base64') }
  }
  const problem = problemOfOutcome(result.outcome, result.detail, id)
  return { invocationId: id, outcome: result.outcome, status: problem.status, headers: [], bodyBase64: '', problem }
}
