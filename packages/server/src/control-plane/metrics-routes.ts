import { requireScope } from '@carpool/access'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { Authenticate } from './authenticate.ts'
import { refuseWebPages } from './check-origin.ts'
import type { ControlPlaneOptions } from './control-plane-options.ts'
import { addOperation, type Operation } from './operation.ts'

const READ: Operation = {
  id: 'readMetrics',
  method: 'GET',
  url: '/metrics',
  summary: 'Metrics of the server in the text format of Prometheus. With metricsAccess=token for admins alone.',
  response: { status: 200, description: 'The metrics.', schema: Type.String(), contentType: 'text/plain' },
  errors: ['unauthorized', 'forbidden'],
}

/** `GET /metrics`: for whoever is on this machine, or, as it names the functions of all owners, for admins alone. */
export function metricsRoute(
  app: FastifyInstance,
  { metrics, metricsAccess }: Pick<ControlPlaneOptions, 'metrics' | 'metricsAccess'>,
  authenticate: Authenticate,
): void {
  addOperation(app, READ, async (request, reply) => {
    if (metricsAccess === 'token') {
      request.principal = authenticate(request, reply)
      requireScope(request.principal, 'admin')
    } else refuseWebPages(request)
    const text = await metrics.render()
    reply.type(metrics.contentType)
    return text
  })
}
