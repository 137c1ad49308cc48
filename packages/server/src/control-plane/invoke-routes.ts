import { randomUUIDv7 } from 'node:crypto'
import { Cancellation, CarpoolError, problemOfOutcome, type InvokeRequest, type InvokeResponse } from '@carpool/core'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { ControlPlaneOptions } from './control-plane.ts'
import { addOperation, type Operation } from './operation.ts'
import { requireFunction } from './ownership.ts'
import { INVOKE_BODY } from './request-schemas.ts'
import { INVOKE_RESPONSE } from './response-schemas.ts'

const INVOKE: Operation = {
  id: 'invokeFunction',
  method: 'POST',
  url: '/v1/functions/:name/invocations',
  summary: 'Call a function. What the call comes to is the answer, also if the function failed.',
  scope: 'invoke',
  body: INVOKE_BODY,
  response: { status: 200, description: 'What the call came to.', schema: INVOKE_RESPONSE },
  errors: [
    ...(['not-found', 'function-disabled', 'too-many-requests', 'loop-detected', 'saturated', 'no-host'] as const),
    ...(['ledger-unavailable', 'draining', 'data-unusable'] as const),
  ],
}

/** Call functions through the control plane. */
export function invokeRoutes(app: FastifyInstance, { registry, invoke, dataUrl, maxBodyBytes }: ControlPlaneOptions): void {
  addOperation<InvokeRequest>(app, INVOKE, async (request, reply) => {
    const { method, path, headers, bodyBase64 } = request.body
    const functionName = request.params['name'] ?? ''
    requireFunction(request, registry, functionName)
    const body = Buffer.from(bodyBase64, 'base64')
    if (body.length > maxBodyBytes)
      throw new CarpoolError('body-too-large', `The limit for a request body is ${maxBodyBytes} bytes.`)
    const { cancellation, release } = cancelOnLeave(reply)
    try {
      const finished = await invoke({
        id: randomUUIDv7(),
        functionName,
        trigger: 'cli',
        request: { method, url: `${dataUrl()}${path}`, headers, body, clientIp: request.ip },
        cancellation,
      })
      return invokeResponse(finished)
    } finally {
      release()
    }
  })
}

/** A cancellation that is told when the client leaves before its answer, until it is released. */
function cancelOnLeave({ raw }: FastifyReply): { cancellation: Cancellation; release: () => void } {
  const cancellation = new Cancellation()
  const leave = (): void => cancellation.cancel()
  raw.once('close', leave)
  // It may have left while its body was read.
  if (raw.destroyed) leave()
  return { cancellation, release: () => raw.off('close', leave) }
}

function invokeResponse({ record: { id }, result }: Awaited<ReturnType<ControlPlaneOptions['invoke']>>): InvokeResponse {
  if (result.outcome === 'ok') {
    const { status, headers, body } = result.response
    return { invocationId: id, outcome: 'ok', status, headers, bodyBase64: Buffer.from(body).toString('base64') }
  }
  const problem = problemOfOutcome(result.outcome, result.detail, id)
  return { invocationId: id, outcome: result.outcome, status: problem.status, headers: [], bodyBase64: '', problem }
}
