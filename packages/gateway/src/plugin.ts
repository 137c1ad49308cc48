import type { Socket } from 'node:net'
import { FROM_OUTSIDE, monotonicClock, type CallChain, type CarpoolError, type ErrorCode, type Invoke } from '@carpool/core'
import type { FastifyPluginCallback, onRequestHookHandler } from 'fastify'
import { ByteBudget } from './byte-budget.ts'
import { CallHandler, type GatewayPhase } from './call-handler.ts'
import type { GatewayLimits } from './gateway-limits.ts'
import { ClientConnection } from './hardening/connections.ts'
import { LingeringClose, Sweep, WriteStallTimeout } from './hardening/slow-clients.ts'
import { BodyReader } from './request-body.ts'

export interface GatewayOptions {
  readonly invoke: Invoke
  readonly limits: GatewayLimits
  /** Default: open. */
  readonly phase?: () => GatewayPhase
  /** Called for faults of ours: never for what a caller or a function did. */
  readonly onFault: (error: CarpoolError) => void
  /** Called for what is refused before it is known which function it calls: there is no record of it. */
  readonly onRefused?: (code: ErrorCode) => void
  /** Which calls of functions stand before a request, by its header `x-carpool-hops`. Default: none. */
  readonly chainOf?: (header: string | string[] | undefined) => CallChain
  /** Whose function it is: shares go by it. Default: nobody's. */
  readonly ownerOf?: (functionName: string) => string
  /** Spreads the times after which callers are asked to retry; default: `Math.random`. */
  readonly random?: () => number
}

/** What answers calls, and what it shares with the hardening of connections. */
export interface Calls {
  readonly handler: CallHandler
  readonly lingering: LingeringClose
  readonly writeStall: WriteStallTimeout
  readonly sweep: Sweep
  readonly budget: ByteBudget
}

/** @param connectionOf what is known of a client's connection; undefined if it is closed or was refused */
export function createCalls(options: GatewayOptions, connectionOf: (socket: Socket) => ClientConnection | undefined): Calls {
  const {
    limits,
    onRefused = () => {},
    chainOf = () => FROM_OUTSIDE,
    ownerOf = () => '',
    random = Math.random,
    phase = () => 'open',
  } = options
  const clock = monotonicClock
  const sweep = new Sweep(clock)
  const budget = new ByteBudget(limits.maxBufferedBytes)
  const lingering = new LingeringClose(sweep, clock)
  const bodies = new BodyReader({ limits, sweep, budget, clock })
  const stall = { sweep, budget, clock, timeoutMs: limits.answerTimeoutMs }
  const writeStall = new WriteStallTimeout(stall)
  const { invoke, onFault } = options
  const parts = {
    invoke,
    limits,
    phase,
    onFault,
    onRefused,
    chainOf,
    ownerOf,
    random,
    connectionOf,
    bodies,
    stall,
    writeStall,
    lingering,
  }
  return { handler: new CallHandler(parts), lingering, writeStall, sweep, budget }
}

/**
 * The data plane as a Fastify plugin: `app.register(carpoolGateway, { prefix: '/functions', … })` has functions answer at
 * `/functions/<name>/` and below, in an app with other routes. It limits and answers calls; what hardens raw connections against
 * hostile clients is createGateway's, which owns its HTTP server. So are WebSockets: whoever listens for upgrades of a server
 * gets those of all its routes.
 */
export const carpoolGateway: FastifyPluginCallback<GatewayOptions> = (app, options, done) => {
  const { prefix } = app
  const { handler } = createCalls(options, trackConnections())
  // Hijacked before Fastify reads a body: what a body is, the function decides.
  const onRequest: onRequestHookHandler = ({ raw, originalUrl }, reply, _done) => {
    reply.hijack()
    if (handler.receive(raw, reply.raw, monotonicClock())) handler.handle(raw, reply.raw, originalUrl, prefix)
  }
  app.all('/*', { onRequest }, () => {})
  done()
}

/** Keeps what the plugin has to know of the connections of an app. */
function trackConnections(): (socket: Socket) => ClientConnection {
  const connections = new WeakMap<Socket, ClientConnection>()
  return (socket) => {
    const known = connections.get(socket)
    if (known !== undefined) return known
    const connection = new ClientConnection(socket, monotonicClock())
    connections.set(socket, connection)
    socket.once('close', () => connection.closed())
    return connection
  }
}
