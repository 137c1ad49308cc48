import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { monotonicClock } from '@carpool/core'
import { ReadingTurns } from './reading-turns.ts'
import { nameIn } from './request-decoder.ts'
import { Turnstile } from './turnstile.ts'

/** How long a connection without a request stays open, in ms: longer than the 60 s of most load balancers, or they would send into its end. */
const KEEP_ALIVE_MS = 72_000
/** How long requests may be handed on in one turn of the event loop, in ms. */
const HAND_ON_MS = 0.4
/** A shorter wait is none, in ms. */
const NOTABLE_MS = 0.1

/**
 * The HTTP server under the gateway. In one turn of the event loop it hands on so many requests, of each function one in turn; and while there is
 * more than that, a connection is read again after its answer only when its turn has come. So a flood of one function's calls does not hold up
 * those of another, and is read no faster than it can be worked off.
 */
export class GatewayServer {
  readonly #requests = new Turnstile({ turnMs: HAND_ON_MS, clock: monotonicClock, nextTurn: setImmediate })
  readonly #reading = new ReadingTurns()
  readonly #waitedMs = new WeakMap<IncomingMessage, number>()

  create(handler: RequestListener): Server {
    const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0 }, (request, response) => {
      const cameAtMs = monotonicClock()
      const { socket, url = '' } = request
      const functionName = nameIn(url)
      this.#reading.read(socket, functionName)
      if (this.#requests.isBusy || this.#reading.isBusy) {
        response.once('finish', () => this.#reading.pause(socket, functionName))
      }
      this.#requests.enter(functionName, () => {
        const waitedMs = monotonicClock() - cameAtMs
        if (waitedMs >= NOTABLE_MS) this.#waitedMs.set(request, waitedMs)
        handler(request, response)
      })
    })
    return server.on('connection', (socket) => this.#reading.opened(socket))
  }

  /** How long a request waited for its turn, in ms. */
  waitedMs(request: IncomingMessage): number {
    return this.#waitedMs.get(request) ?? 0
  }
}
