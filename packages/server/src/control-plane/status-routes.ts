import { isAdmin, requireScope } from '@carpool/access'
import {
  MAX_DECISIONS,
  retryAfterSeconds,
  type ErrorCode,
  type ReadinessInfo,
  type ServerInfo,
  type ServerState,
  type StatusInfo,
  type StatusSummary,
} from '@carpool/core'
import { publicSandboxInfo } from '@carpool/sandbox'
import type { FastifyInstance } from 'fastify'
import { Type } from '@carpool/core/schema'
import { refuseWebPages, type Authenticate } from './authenticate.ts'
import type { ControlPlaneOptions } from './control-plane-options.ts'
import { addOperation, type Operation } from './operation.ts'
import { HEALTH, READINESS_ANSWER, SERVER_ANSWER, STATUS_ANSWER } from './schemas.ts'

const HEALTHZ: Operation = {
  id: 'getHealth',
  method: 'GET',
  url: '/healthz',
  summary: 'Whether the server is alive.',
  response: { status: 200, description: 'It is.', schema: HEALTH },
  errors: ['unauthorized'],
}
const READYZ: Operation = {
  id: 'getReadiness',
  method: 'GET',
  url: '/readyz',
  summary: 'Whether the server takes calls, and how much of the sandbox is on.',
  response: { status: 200, description: 'It does.', schema: READINESS_ANSWER },
  alsoAnswers: { 503: { description: 'It does not, for these reasons.', schema: READINESS_ANSWER } },
  errors: ['unauthorized'],
}
const GET_STATUS: Operation = {
  id: 'getStatus',
  method: 'GET',
  url: '/v1/status',
  summary: 'How the server fares: for admins with its hosts, its queue, what is open and the latest scaling decisions.',
  scope: 'read',
  response: { status: 200, description: 'The status.', schema: STATUS_ANSWER },
}
const GET_SERVER: Operation = {
  id: 'getServer',
  method: 'GET',
  url: '/v1/server',
  summary: 'Where the server listens, and how much of the sandbox is on; for admins with its hosts.',
  scope: 'read',
  response: { status: 200, description: 'The server.', schema: SERVER_ANSWER },
}

const READ_METRICS: Operation = {
  id: 'readMetrics',
  method: 'GET',
  url: '/metrics',
  summary: 'Metrics of the server in the text format of Prometheus. With metricsAccess=token for admins alone.',
  response: { status: 200, description: 'The metrics.', schema: Type.String(), contentType: 'text/plain' },
  errors: ['unauthorized', 'forbidden'],
}

/** With which error the data plane would refuse a call in each state. */
const REFUSALS: Readonly<Record<Exclude<ServerState, 'ready'>, ErrorCode>> = {
  'starting': 'no-host',
  'saturated': 'saturated',
  'draining': 'draining',
  'not-ready': 'no-host',
}

/**
 * For monitoring without a token:
 *
 * - `GET /healthz` is 200 as long as the event loop turns; it looks at nothing else.
 * - `GET /readyz` is 200 if the state is `ready`, else 503, with the state and the reasons. A saturated server is not ready: all
 *   hosts are full and calls wait so long that some are refused; a load balancer does better to send the next ones elsewhere. How
 *   much of the sandbox there is stands beside it, and has no part in it.
 */
export function healthRoutes(app: FastifyInstance, { status }: Pick<ControlPlaneOptions, 'status'>): void {
  addOperation(app, HEALTHZ, (request) => {
    refuseWebPages(request)
    return { status: 'ok' }
  })
  addOperation(app, READYZ, (request, reply): ReadinessInfo => {
    refuseWebPages(request)
    const { state, reasons, sandbox } = status()
    if (state !== 'ready') reply.code(503).header('retry-after', retryAfterSeconds(REFUSALS[state], Math.random))
    return { status: state, reasons, sandbox: publicSandboxInfo(sandbox) }
  })
}

/** The server as a whole. Who is no admin sees nothing that functions of others have a part in. */
export function statusRoutes(
  app: FastifyInstance,
  { status, url, adminUrl }: Pick<ControlPlaneOptions, 'status' | 'url' | 'adminUrl'>,
): void {
  addOperation(app, GET_STATUS, ({ principal }): StatusInfo | StatusSummary => {
    const { decisions, ...rest } = status()
    if (isAdmin(principal)) return { ...rest, decisions: decisions.slice(0, MAX_DECISIONS) }
    const { version, state, reasons, uptimeMs, sandbox } = rest
    return { version, state, reasons, uptimeMs, sandbox: publicSandboxInfo(sandbox) }
  })
  addOperation(app, GET_SERVER, ({ principal }): ServerInfo => {
    const { version, hosts, sandbox } = status()
    const addresses = { version, url: url(), adminUrl: adminUrl() }
    if (isAdmin(principal)) return { ...addresses, hosts, sandbox }
    return { ...addresses, hosts: [], sandbox: publicSandboxInfo(sandbox) }
  })
}

/** `GET /metrics`: for all on this machine, or, as it names the functions of all owners, for admins alone. */
export function metricsRoute(
  app: FastifyInstance,
  { metrics, metricsAccess }: Pick<ControlPlaneOptions, 'metrics' | 'metricsAccess'>,
  authenticate: Authenticate,
): void {
  addOperation(app, READ_METRICS, async (request, reply) => {
    if (metricsAccess === 'token') {
      request.principal = authenticate(request, reply)
      requireScope(request.principal, 'admin')
    } else refuseWebPages(request)
    const text = await metrics.render()
    reply.type(metrics.contentType)
    return text
  })
}
