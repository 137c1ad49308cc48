import {
  MAX_DECISIONS,
  retryAfterSeconds,
  type ErrorCode,
  type ReadinessInfo,
  type ServerState,
  type StatusInfo,
} from '@carpool/core'
import type { FastifyInstance } from 'fastify'
import type { ControlPlaneOptions } from './control-plane.ts'

type StatusOptions = Pick<ControlPlaneOptions, 'status'>

/** With which error the data plane would refuse a call in each state. */
const REFUSALS: Readonly<Record<Exclude<ServerState, 'ready'>, ErrorCode>> = {
  'starting': 'no-host',
  'saturated': 'saturated',
  'draining': 'draining',
  'not-ready': 'no-host',
}

/**
 * For whoever watches the server without a token:
 *
 * - `GET /healthz` is 200 as long as the event loop turns; it looks at nothing else.
 * - `GET /readyz` is 200 if the state is `ready`, else 503, with the state and the reasons. A saturated server is not ready: every host is
 *   full and calls wait so long that some are refused, so that a load balancer does better to send the next ones elsewhere.
 */
export function healthRoutes(app: FastifyInstance, { status }: StatusOptions): void {
  app.get('/healthz', () => ({ status: 'ok' }))
  app.get('/readyz', (_request, reply) => {
    const { state, reasons } = status()
    if (state !== 'ready') reply.code(503).header('retry-after', retryAfterSeconds(REFUSALS[state], Math.random))
    return { status: state, reasons } satisfies ReadinessInfo
  })
}

/** `GET /v1/status`: the hosts, the queue and the latest scaling decisions. */
export function statusRoute(app: FastifyInstance, { status }: StatusOptions): void {
  app.get('/v1/status', (): StatusInfo => {
    const { decisions, ...rest } = status()
    return { ...rest, decisions: decisions.slice(0, MAX_DECISIONS) }
  })
}
