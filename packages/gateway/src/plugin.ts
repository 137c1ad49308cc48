import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { monotonicClock, type CarpoolError, type ErrorCode, type Invoke } from '@carpool/core'
import type { FastifyInstance, FastifyPluginCallback, onRequestHookHandler } from 'fastify'
import { BodyReader } from './body-reader.ts'
import { ByteBudget } from './byte-budget.ts'
import { CallHandler } from './call-handler.ts'
import { ClientConnection } from './client-connection.ts'
import type { GatewayPhase } from './drain.ts'
import type { GatewayLimits } from './gateway-limits.ts'
import { Lingering } from './lingering.ts'
import { Sweep } from './sweep.ts'
import { UnreadAnswers } from './unread-answers.ts'

export interface GatewayOptions {
  readonly invoke: Invoke
  readonly limits: GatewayLimits
  /** Default: open. */
  readonly phase?: () => GatewayPhase
  /** Told of faults of ours: never of what a caller or a function did. */
  readonly onFault: (error: CarpoolError) => void
  /** Told of what is refused before it is known which function it calls: there is no record of it. */
  readonly onRefused?: (code: ErrorCode) => void
  /** How many functions called each other before a request came, by its header `x-carpool-hops`. Default: none did. */
  readonly hopsOf?: (header: string | string[] | undefined) => number
  /** Spreads what callers are told of when to come back; default: `Math.random`. */
  readonly random?: () => number
}

/** What answers calls, and what looks after slow clients with it. */
export interface Calls {
  readonly handler: CallHandler
  readonly lingering: Lingering
  readonly sweep: Sweep
}

/** @param connectionOf what is known of a client's connection; undefined if it is closed or was refused */
export function createCalls(options: GatewayOptions, connectionOf: (socket: Socket) => ClientConnection | undefined): Calls {
  const { limits, onRefused = () => {}, hopsOf = () => 0, random = Math.random, phase = () => 'open' } = options
  const clock = monotonicClock
  const sweep = new Sweep(clock)
  const budget = new ByteBudget(limits.maxBufferedBytes)
  const lingering = new Lingering(sweep, clock)
  const bodies = new BodyReader({ limits, sweep, budget, clock })
  const unread = new UnreadAnswers({ sweep, budget, clock, timeoutMs: limits.answerTimeoutMs })
  const { invoke, onFault } = options
  const parts = { invoke, limits, phase, onFault, onRefused, hopsOf, random, connectionOf, bodies, unread, lingering }
  return { handler: new CallHandler(parts), lingering, sweep }
}

export interface PluginOptions extends GatewayOptions {
  /** Calls on connections that somebody else looks after, who has checked each request as it came. Absent: the plugin does both. */
  readonly calls?: Calls
}

/**
 * The data plane as a Fastify plugin: `app.register(carpoolGateway, { prefix: '/functions', … })` has functions answer at
 * `/functions/<name>/` and below, in an app with other routes. It limits and answers calls; what hardens raw connections against hostile
 * clients is createGateway's, which owns its HTTP server.
 */
export const carpoolGateway: FastifyPluginCallback<PluginOptions> = (app, options, done) => {
  const { prefix } = app
  const handler = options.calls?.handler
  addRoute(app, handler === undefined ? unguarded(options, prefix) : (...request) => handler.handle(...request, prefix))
  done()
}

type Begin = (incoming: IncomingMessage, response: ServerResponse, target: string) => void

/** A call is taken out of the framework's hands before that has looked at anything: what a body is, is the function's to say. */
function addRoute(app: FastifyInstance, begin: Begin): void {
  const onRequest: onRequestHookHandler = (request, reply, _done) => {
    reply.hijack()
    begin(request.raw, reply.raw, request.originalUrl)
  }
  app.all('/*', { onRequest }, () => {})
}

/** Begins calls on connections of which nothing is known yet. */
function unguarded(options: GatewayOptions, prefix: string): Begin {
  const connections = new WeakMap<Socket, ClientConnection>()
  const connectionOf = (socket: Socket): ClientConnection => {
    const known = connections.get(socket)
    if (known !== undefined) return known
    const connection = new ClientConnection(socket, monotonicClock())
    connections.set(socket, connection)
    socket.once('close', () => connection.closed())
    return connection
  }
  const { handler } = createCalls(options, connectionOf)
  return (incoming, response, target) => {
    if (handler.arrived(incoming, response, monotonicClock())) handler.handle(incoming, response, target, prefix)
  }
}
