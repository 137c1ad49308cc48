import type { Socket } from 'node:net'
import { CarpoolError, monotonicClock } from '@carpool/core'
import Fastify, { type FastifyInstance } from 'fastify'
import { errorOfClient, refusalText } from './client-error.ts'
import { Connections } from './connections.ts'
import { connectionLimit } from './descriptor-limit.ts'
import { GatewayServer } from './gateway-server.ts'
import { askWhoIsThere } from './half-closed.ts'
import { carpoolGateway, createCalls, type GatewayOptions } from './plugin.ts'

export interface ServerGatewayOptions extends GatewayOptions {
  /** Whether there is a function of this name: those that call none wait in one line. Default: there is. */
  readonly isFunction?: (name: string) => boolean
}

/** The data plane on an HTTP server of its own, hardened against slow, half-open and lying clients. */
export function createGateway(options: ServerGatewayOptions): FastifyInstance {
  const { onRefused = () => {}, isFunction = () => true, random = Math.random } = options
  const limits = { ...options.limits, maxConnections: connectionLimit(options.limits.maxConnections) }
  const clock = monotonicClock
  const calls = createCalls({ ...options, limits }, (socket) => connections.of(socket))
  const { handler, lingering, sweep } = calls

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
    arrived: (request, response, nowMs) => handler.arrived(request, response, nowMs),
    connecting: (socket) => {
      // From here on the HTTP server looks after nothing on it.
      socket.on('error', () => socket.destroy())
      fail(socket, new CarpoolError('bad-request', 'The method CONNECT is not supported.'))
    },
  })
  const gateway = Fastify({
    serverFactory: (listener) => server.create(listener),
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
  gateway.register(carpoolGateway, { ...options, limits, calls })
  return gateway
}
