import {
  CarpoolError,
  PROBLEM_CONTENT_TYPE,
  problemOfError,
  retryAfterSeconds,
  type DeployRequest,
  type Invoke,
  type Revision,
  type ServerInfo,
  type StatusInfo,
} from '@carpool/core'
import type { FunctionLogs } from '@carpool/function-logs'
import type { Ledger } from '@carpool/ledger'
import { answerClientError } from '@carpool/gateway'
import type { Meter } from '@carpool/metering'
import type { ServerMetrics } from '@carpool/metrics'
import type { Registry } from '@carpool/registry'
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import { authorize } from './authorize.ts'
import { functionRoutes } from './function-routes.ts'
import { healthRoutes, statusRoute } from './health-routes.ts'
import { logRoutes } from './log-routes.ts'
import { describeSchemaFault, errorOfRequest } from './request-problem.ts'
import { usageRoutes } from './usage-routes.ts'

export interface ControlPlaneOptions {
  readonly token: string
  readonly registry: Registry
  readonly meter: Meter
  readonly logs: FunctionLogs
  readonly ledger: Ledger
  readonly metrics: ServerMetrics
  readonly deploy: (functionName: string, request: DeployRequest) => Promise<Revision>
  /** Takes a function out of service. @throws CarpoolError `not-found` */
  readonly remove: (functionName: string) => Promise<void>
  readonly invoke: Invoke
  readonly serverInfo: () => ServerInfo
  readonly status: () => StatusInfo
  /** Address of the data plane, without a slash at the end. */
  readonly dataUrl: () => string
  readonly maxBodyBytes: number
  readonly maxBundleBytes: number
  readonly onFault: (error: CarpoolError) => void
}

/** A deploy carries a source map, which is larger than the code, and both grow when they are quoted in JSON. */
const BODY_BYTES_PER_BUNDLE_BYTE = 8

/** The control plane: what operators and the CLI call. */
export function createControlPlane(options: ControlPlaneOptions): FastifyInstance {
  const bodyLimit = Math.max(options.maxBundleBytes * BODY_BYTES_PER_BUNDLE_BYTE, options.maxBodyBytes * 2, 1024 * 1024)
  const refuse = (cause: unknown, reply: FastifyReply): FastifyReply => {
    const error = errorOfRequest(cause, bodyLimit)
    if (error.code === 'internal') options.onFault(error)
    const retryAfter = retryAfterSeconds(error.code, Math.random)
    if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
    return reply.code(error.status).type(PROBLEM_CONTENT_TYPE).send(problemOfError(error))
  }
  const app = Fastify({
    bodyLimit,
    forceCloseConnections: true,
    clientErrorHandler: answerClientError,
    // A key that is not known or a text for a number is a mistake, which Fastify's own options would hide.
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false } },
    schemaErrorFormatter: describeSchemaFault,
    frameworkErrors: (cause, _request, reply) => void refuse(cause, reply),
  })
  app.removeContentTypeParser('text/plain')
  app.setErrorHandler((cause, _request, reply) => refuse(cause, reply))
  app.setNotFoundHandler(() => {
    throw new CarpoolError('route-not-found', 'The control plane has nothing at this address.')
  })
  healthRoutes(app, options)
  app.get('/metrics', async (_request, reply) => reply.type(options.metrics.contentType).send(await options.metrics.render()))
  app.register((guarded, _options, done) => {
    guarded.addHook('onRequest', async (request) => authorize(request, options.token))
    guarded.get('/v1/server', () => options.serverInfo())
    statusRoute(guarded, options)
    functionRoutes(guarded, options)
    logRoutes(guarded, options)
    usageRoutes(guarded, options)
    done()
  })
  return app
}
