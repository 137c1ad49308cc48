import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { monotonicClock } from '@carpool/core'
import type { GatewayLimits } from './gateway-limits.ts'
import { ReadingTurns } from './reading-turns.ts'
import { nameIn } from './request-decoder.ts'
import { Turnstile } from './turnstile.ts'

export interface GatewayServerOptions {
  readonly limits: Pick<GatewayLimits, 'maxHeaderBytes' | 'headerTimeoutMs'>
  /** Whether there is a function of this name; what calls none has turns as if it were one function. */
  readonly isFunction: (name: string) => boolean
  readonly opened: (socket: Socket) => void
  /** A request came, and will have its turn unless this says that it has none. */
  readonly arrived: (request: IncomingMessage, response: ServerResponse, nowMs: number) => boolean
  /** A client wants to be joined with another server. */
  readonly connecting: (socket: Socket) => void
}

/** How long a connection without a request stays open, in ms: longer than the 60 s of most load balancers, or they would send into its end. */
const KEEP_ALIVE_MS = 72_000
/** How often connections are looked through for headers that took too long, in ms. */
const HEADER_SWEEP_MS = 500
/** How long requests may be handed on in one turn of the event loop, in ms. */
const HAND_ON_MS = 0.4
/** A shorter wait is none, in ms. */
const NOTABLE_MS = 0.1
/** The name by which calls of no function have their turns. */
const NO_FUNCTION = ''

/**
 * The HTTP server under the gateway. In one turn of the event loop it hands on so many requests, of each function one in turn; and while there is
 * more than that, a connection is read again after its answer only when its turn has come. So a flood of one function's calls does not hold up
 * those of another, and is read no faster than it can be worked off.
 */
export class GatewayServer {
  readonly #options: GatewayServerOptions
  readonly #requests = new Turnstile({ turnMs: HAND_ON_MS, clock: monotonicClock, nextTurn: setImmediate })
  readonly #reading = new ReadingTurns()
  readonly #waitedMs = new WeakMap<IncomingMessage, number>()

  constructor(options: GatewayServerOptions) {
    this.#options = options
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

  /** How long a request waited for its turn, in ms. */
  waitedMs(request: IncomingMessage): number {
    return this.#waitedMs.get(request) ?? 0
  }

  #listenerFor(handler: RequestListener): RequestListener {
    const { isFunction, arrived } = this.#options
    return (request, response) => {
      const cameAtMs = monotonicClock()
      const { socket, url = '' } = request
      if (!arrived(request, response, cameAtMs)) return
      const named = nameIn(url)
      const functionName = isFunction(named) ? named : NO_FUNCTION
      this.#reading.read(socket, functionName)
      if (this.#requests.isBusy || this.#reading.isBusy) {
        response.once('finish', () => this.#reading.pause(socket, functionName))
      }
      this.#requests.enter(functionName, () => {
        const waitedMs = monotonicClock() - cameAtMs
        if (waitedMs >= NOTABLE_MS) this.#waitedMs.set(request, waitedMs)
        handler(request, response)
      })
    }
  }
}
