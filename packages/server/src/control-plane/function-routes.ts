import { randomUUIDv7 } from 'node:crypto'
import { CarpoolError, Cancellation, checkFunctionName, problemOfOutcome } from '@carpool/core'
import type { DeployRequest, FunctionInfo, InvokeRequest, InvokeResponse, Revision } from '@carpool/core'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { ControlPlaneOptions } from './control-plane.ts'
import { DEPLOY_BODY, INVOKE_BODY } from './schemas.ts'

interface Named {
  Params: { name: string }
}

/** Deploy, list, show, delete and call functions. */
export function functionRoutes(
  app: FastifyInstance,
  { registry, meter, deploy, remove, invoke, dataUrl, maxBodyBytes }: ControlPlaneOptions,
): void {
  const info = (revision: Revision): FunctionInfo => {
    const { functionName, id, form, createdAt, codeBytes, limits } = revision
    const { invocations, failures } = meter.countsOf(functionName)
    const url = `${dataUrl()}/${functionName}/`
    return { name: functionName, revision: id, form, url, deployedAt: createdAt, codeBytes, limits, invocations, failures }
  }

  app.post<Named & { Body: DeployRequest }>(
    '/v1/functions/:name/revisions',
    { schema: { body: DEPLOY_BODY } },
    async (request, reply) => {
      const name = checkFunctionName(request.params.name)
      return reply.code(201).send(info(await deploy(name, request.body)))
    },
  )

  app.get('/v1/functions', () => ({ functions: registry.list().map(info) }))

  app.get<Named>('/v1/functions/:name', (request) => info(registry.route(request.params.name)))

  app.delete<Named>('/v1/functions/:name', async (request, reply) => {
    await remove(request.params.name)
    return reply.code(204).send()
  })

  app.post<Named & { Body: InvokeRequest }>(
    '/v1/functions/:name/invocations',
    { schema: { body: INVOKE_BODY } },
    async (request, reply) => {
      const { method, path, headers, bodyBase64 } = request.body
      const body = Buffer.from(bodyBase64, 'base64')
      if (body.length > maxBodyBytes)
        throw new CarpoolError('body-too-large', `The limit for a request body is ${maxBodyBytes} bytes.`)
      const functionName = request.params.name
      const url = `${dataUrl()}${path}`
      const { cancellation, release } = cancelOnLeave(reply)
      try {
        const finished = await invoke({
          id: randomUUIDv7(),
          functionName,
          trigger: 'cli',
          request: { method, url, headers, body, clientIp: request.ip },
          cancellation,
        })
        return invokeResponse(finished)
      } finally {
        release()
      }
    },
  )
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
