import type { Socket } from 'node:net'
import { monotonicClock, CarpoolError, type ErrorCode, type Invoke } from '@carpool/core'
import Fastify, { type FastifyInstance } from 'fastify'
import { BodyReader } from './body-reader.ts'
import { ByteBudget } from './byte-budget.ts'
import { CallHandler } from './call-handler.ts'
import { errorOfClient, refusalText } from './client-error.ts'
import { Connections } from './connections.ts'
import { connectionLimit } from './descriptor-limit.ts'
import type { GatewayPhase } from './drain.ts'
import type { GatewayLimits } from './gateway-limits.ts'
import { GatewayServer } from './gateway-server.ts'
import { askWhoIsThere } from './half-closed.ts'
import { Lingering } from './lingering.ts'
import { Sweep } from './sweep.ts'
import { UnreadAnswers } from './unread-answers.ts'

export interface GatewayOptions {
  readonly invoke: Invoke
  readonly limits: GatewayLimits
  readonly phase: () => GatewayPhase
  /** Told of faults of ours: never of what a caller or a function did. */
  readonly onFault: (error: CarpoolError) => void
  /** Told of what is refused before it is known which function it calls: there is no record of it. */
  readonly onRefused?: (code: ErrorCode) => void
  /** Whether there is a function of this name: those that call none wait in one line. Default: there is. */
  readonly isFunction?: (name: string) => boolean
  /** How many functions called each other before a request came, by its header `x-carpool-hops`. Default: none did. */
  readonly hopsOf?: (header: string | string[] | undefined) => number
  /** Spreads what callers are told of when to come back; default: `Math.random`. */
  readonly random?: () => number
}

/** The data plane: HTTP in, an invocation, HTTP out. It decides what a request is, and nothing else. */
export function createGateway(options: GatewayOptions): FastifyInstance {
  const { onRefused = () => {}, isFunction = () => true, hopsOf = () => 0, random = Math.random } = options
  const limits = { ...options.limits, maxConnections: connectionLimit(options.limits.maxConnections) }
  const clock = monotonicClock
  const sweep = new Sweep(clock)
  const budget = new ByteBudget(limits.maxBufferedBytes)
  const lingering = new Lingering(sweep, clock)
  const bodies = new BodyReader({ limits, sweep, budget, clock })
  const unread = new UnreadAnswers({ sweep, budget, clock, timeoutMs: limits.answerTimeoutMs })

  /** Answers on the connection itself, where there is no request to answer. */
  const refuseConnection = (socket: Socket, error: CarpoolError): void => {
    onRefused(error.code)
    if (socket.writable) socket.write(refusalText(error, random))
    lingering.close(socket)
  }
  const connections = new Connections({ limits, clock, refuse: refuseConnection })
  const fail = (socket: Socket, error: CarpoolError): void => {
    connections.of(socket)?.fail(error, () => refuseConnection(socket, error))
  }
  const server = new GatewayServer({
    limits,
    isFunction,
    opened: (socket) => {
      const connection = connections.opened(socket)
      if (connection !== undefined) socket.once('end', () => askWhoIsThere(connection, sweep, clock))
    },
    arrived: (request, response, nowMs) => {
      const connection = connections.of(request.socket)
      return connection !== undefined && connection.arrived(response, nowMs) && calls.check(connection, request, response)
    },
    connecting: (socket) => {
      // From here on the HTTP server looks after nothing on it.
      socket.on('error', () => socket.destroy())
      fail(socket, new CarpoolError('bad-request', 'The method CONNECT is not supported.'))
    },
  })
  const gateway = Fastify({
    serverFactory: (handler) => server.create(handler),
    forceCloseConnections: 'idle',
    // Refused below, in our own form.
    return503OnClosing: false,
    clientErrorHandler: (cause, socket) => {
      const error = errorOfClient(cause, limits)
      if (error === undefined) socket.destroy()
      else fail(socket, error)
    },
    // The path belongs to the function from its name on, so the router has nothing to find in it, nor to refuse.
    rewriteUrl: () => '/',
  })

  const calls = new CallHandler({
    ...options,
    limits,
    onRefused,
    hopsOf,
    random,
    connections,
    bodies,
    unread,
    lingering,
    waitedMs: (request) => server.waitedMs(request),
  })
  // A call is taken out of the framework's hands before it has looked at anything: what a body is, is the function's to say.
  gateway.addHook('onRequest', (request, reply, _done) => {
    reply.hijack()
    void calls.handle(request, reply)
  })
  gateway.all('/', () => {})
  return gateway
}
