import { FailedAttempts, holdsToken, isAdmin } from '@carpool/access'
import { CarpoolError, monotonicClock, PROBLEM_CONTENT_TYPE, problemOfError, retryAfterSeconds, SharedPool } from '@carpool/core'
import { createServer } from '@carpool/core/node-http'
import { connectionLimit, KEEP_ALIVE_MS, OneRequestEach } from '@carpool/gateway'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { auditRoutes, tokenRoutes } from './admin-routes.ts'
import { createAudit } from './audit.ts'
import { createAuthenticate } from './authenticate.ts'
import type { ControlPlaneOptions } from './control-plane-options.ts'
import { deployBodyLimit, functionRoutes } from './function-routes.ts'
import { invokeBodyLimit, invokeRoutes } from './invoke-routes.ts'
import { logRoutes } from './log-routes.ts'
import { addOpenApi } from './openapi.ts'
import { errorOfRequest, requireOperation } from './operation.ts'
import { bodyBudget, readJsonBodies } from './request-bodies.ts'
import { secretRoutes } from './secret-routes.ts'
import { healthRoutes, metricsRoute, statusRoutes } from './status-routes.ts'
import { usageRoutes } from './usage-routes.ts'

/** Largest body of an operation that names no other limit, in bytes. */
const BODY_LIMIT_BYTES = 64 * 1024
/** Bodies as large as the largest that one owner may have under way, and all together. */
const OWNER_BODIES = 2
const TOTAL_BODIES = 4
/** Most connections at the same time. */
const MAX_CONNECTIONS = 256
/** The part of them that requests of owners may take, so that they leave some to admins. */
const OWNERS_SHARE = 0.75
/** How long a request may take to arrive; what is answered may take longer. */
const REQUEST_TIMEOUT_MS = 120_000
/** The same for its headers, in ms. */
const HEADERS_TIMEOUT_MS = 10_000
/** How often connections are looked at for that, in ms. */
const CHECK_INTERVAL_MS = 2_000

/** The control plane: what operators, owners and the CLI call. */
export function createControlPlane(options: ControlPlaneOptions): FastifyInstance {
  const largestBodyBytes = Math.max(deployBodyLimit(options), invokeBodyLimit(options))
  const takeShare = bodyBudget({ ownerBytes: OWNER_BODIES * largestBodyBytes, totalBytes: TOTAL_BODIES * largestBodyBytes })
  const maxConnections = connectionLimit('controlPlane', MAX_CONNECTIONS)
  const requests = new SharedPool(Math.max(1, Math.floor(maxConnections * OWNERS_SHARE)))
  const clients = new OneRequestEach({
    maxConnections,
    answerTimeoutMs: options.answerTimeoutMs,
    maxUnreadBytes: TOTAL_BODIES * largestBodyBytes,
  })
  const refuse = (cause: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const error = errorOfRequest(cause, request.routeOptions?.bodyLimit ?? BODY_LIMIT_BYTES)
    if (error.code === 'internal') options.onFault(error)
    // Undefined for an address that is none.
    if (request.audit !== undefined) request.audit.error = error.code
    const retryAfter = retryAfterSeconds(error.code, Math.random)
    if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
    return reply.code(error.status).type(PROBLEM_CONTENT_TYPE).send(problemOfError(error))
  }
  const app = Fastify({
    bodyLimit: BODY_LIMIT_BYTES,
    serverFactory: (handle) => {
      const server = createServer({
        IncomingMessage: clients.IncomingMessage,
        keepAliveTimeout: KEEP_ALIVE_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        headersTimeout: HEADERS_TIMEOUT_MS,
        connectionsCheckingInterval: CHECK_INTERVAL_MS,
        // Node.js would answer by itself.
        requireHostHeader: false,
      })
      // By default Node.js drops what comes behind the first 2000 headers, also the ones that a request is refused for.
      server.maxHeadersCount = 0
      return clients.listen(server, handle)
    },
    forceCloseConnections: true,
    clientErrorHandler: (cause, socket) => clients.clientFailed(cause, socket),
    // A key that is not known or a text for a number is a mistake, which Fastify's own options would hide.
    // And the schemas are ours: there is no need to check them against that of schemas.
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false, validateSchema: false } },
    frameworkErrors: (cause, request, reply) => void refuse(cause, request, reply),
  })
  app.removeAllContentTypeParsers()
  readJsonBodies(app)
  app.setErrorHandler(refuse)
  app.setNotFoundHandler(() => {
    throw new CarpoolError('route-not-found', 'The control plane has nothing at this address.')
  })
  const authenticate = createAuthenticate({
    operatorToken: options.operatorToken,
    tokens: options.access.tokens,
    attempts: new FailedAttempts({ clock: monotonicClock }),
  })
  const enter = createAudit({
    log: options.audit,
    refusals: new FailedAttempts({ clock: monotonicClock }),
    holdsToken: (text) => holdsToken(text) || text.includes(options.operatorToken),
    now: Date.now,
  })
  app.decorate('enterAudit', enter)
  app.decorateRequest('audit')
  app.decorateRequest('principal')
  app.addHook('onRequest', async (request) => {
    request.audit = {}
  })
  app.addHook('onSend', async (request) => enter(request))

  app.register(async (all) => {
    addOpenApi(all, options.version)
    healthRoutes(all, options)
    metricsRoute(all, options, authenticate)
    await all.register(async (guarded) => {
      guarded.addHook('onRequest', async (request, reply) => {
        request.principal = authenticate(request, reply)
        requireOperation(request)
        const { owner } = request.principal
        const admin = isAdmin(request.principal)
        if (!admin) {
          const holder = { owner, functionName: '' }
          if (!requests.tryTake(holder, 1)) throw tooManyRequests(owner, requests.total)
          reply.raw.once('close', () => requests.give(holder, 1))
        }
        // Others, who need no token to connect, shut nobody out who has one.
        clients.keep(request.raw, reply.raw, owner)
        const bytes = bodyBytes(request)
        if (bytes > 0) reply.raw.once('close', takeShare({ owner, bytes, isAdmin: admin }))
      })
      statusRoutes(guarded, options)
      functionRoutes(guarded, options)
      secretRoutes(guarded, options)
      invokeRoutes(guarded, options)
      logRoutes(guarded, options)
      usageRoutes(guarded, options)
      tokenRoutes(guarded, options)
      auditRoutes(guarded, options)
    })
  })
  return app
}

function tooManyRequests(owner: string, most: number): CarpoolError {
  const limit = `Owners may have ${most} requests under way in all, and each half as many as are free`
  return new CarpoolError('saturated', `${limit}, which the requests of ${owner} would exceed; try again soon.`)
}

/** How large the body of a request may become: as it says, or, if it does not, as large as it may be. */
function bodyBytes({ method, headers, routeOptions }: FastifyRequest): number {
  if (method === 'GET' || method === 'HEAD') return 0
  const announced = headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity
  return Math.min(announced, routeOptions.bodyLimit)
}
