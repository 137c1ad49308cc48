import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { monotonicClock } from '@carpool/core'
import type { GatewayLimits } from './gateway-limits.ts'
import { ReadingTurns } from './reading-turns.ts'
import { nameIn } from './request-decoder.ts'

export interface GatewayServerOptions {
  readonly limits: Pick<GatewayLimits, 'maxHeaderBytes' | 'headerTimeoutMs'>
  /** Whether there is a function of this name; what calls none has turns as if it were one function. */
  readonly isFunction: (name: string) => boolean
  readonly opened: (socket: Socket) => void
  /** A request came; it is handed on unless this says that it was refused. */
  readonly arrived: (request: IncomingMessage, response: ServerResponse, nowMs: number) => boolean
  /** A client wants to be joined with another server. */
  readonly connecting: (socket: Socket) => void
}

/** How long a connection without a request stays open, in ms: longer than the 60 s of most load balancers, or they would send into its end. */
const KEEP_ALIVE_MS = 72_000
/** How often connections are looked through for headers that took too long, in ms. */
const HEADER_SWEEP_MS = 500
/** The name by which calls of no function have their turns. */
const NO_FUNCTION = ''

/**
 * The HTTP server under the gateway. While more comes than can be worked off, a connection is read again after its answer only when its turn has come, and
 * those that call one function have turns as one. So a flood of one function's calls does not hold up those of another, and is read no faster than it
 * can be worked off.
 */
export class GatewayServer {
  readonly #options: GatewayServerOptions
  readonly #reading: ReadingTurns

  constructor(options: GatewayServerOptions) {
    this.#options = options
    const { isFunction } = options
    this.#reading = new ReadingTurns((target) => {
      const name = nameIn(target)
      return isFunction(name) ? name : NO_FUNCTION
    })
  }

  create(handler: RequestListener): Server {
    const { limits, opened, connecting } = this.#options
    const server = createServer({
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Node.js counts from the first byte of a request, on a new connection from its start. Bodies have a time of their own.
      headersTimeout: limits.headerTimeoutMs,
      requestTimeout: 0,
      connectionsCheckingInterval: Math.min(HEADER_SWEEP_MS, limits.headerTimeoutMs),
      maxHeaderSize: limits.maxHeaderBytes,
      insecureHTTPParser: false,
      // Answered by us; Node.js would go on with what comes behind the request.
      requireHostHeader: false,
    })
    // None is left out in silence: a request with too many is refused.
    server.maxHeadersCount = 0
    // Not in the documentation, but older than it: a client that only ends its own side is still answered.
    Object.assign(server, { httpAllowHalfOpen: true })
    const listener = this.#listenerFor(handler)
    server.on('request', listener)
    // Else Node.js would ask for a body before anybody has looked at its length.
    server.on('checkContinue', listener)
    server.on('checkExpectation', listener)
    server.on('connect', (_request, socket) => connecting(socket as Socket))
    return server.on('connection', (socket) => {
      this.#reading.opened(socket)
      opened(socket)
    })
  }

  #listenerFor(handler: RequestListener): RequestListener {
    const { arrived } = this.#options
    return (request, response) => {
      if (!arrived(request, response, monotonicClock())) return
      const { socket, url = '' } = request
      this.#reading.read(socket, url)
      if (this.#reading.isBusy) response.once('finish', () => this.#reading.pause(socket))
      handler(request, response)
    }
  }
}
