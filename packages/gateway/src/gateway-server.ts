import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { monotonicClock } from '@carpool/core'
import { nameIn } from './request-decoder.ts'
import { Turnstile } from './turnstile.ts'

/** How long a connection without a request stays open, in ms: longer than the 60 s of most load balancers, or they would send into its end. */
const KEEP_ALIVE_MS = 72_000

/** A shorter wait is none, in ms. */
const NOTABLE_MS = 0.1

/** The HTTP server under the gateway: hands each request on when its turn has come, before anything else is done for it. */
export class GatewayServer {
  readonly #turnstile = new Turnstile({ clock: monotonicClock, nextTurn: setImmediate })
  readonly #waitedMs = new WeakMap<IncomingMessage, number>()

  create(handler: RequestListener): Server {
    return createServer({ keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0 }, (request, response) => {
      const cameAtMs = monotonicClock()
      this.#turnstile.enter(nameIn(request.url ?? ''), () => {
        const waitedMs = monotonicClock() - cameAtMs
        if (waitedMs >= NOTABLE_MS) this.#waitedMs.set(request, waitedMs)
        handler(request, response)
      })
    })
  }

  /** How long a request waited for its turn, in ms. */
  waitedMs(request: IncomingMessage): number {
    return this.#waitedMs.get(request) ?? 0
  }
}
