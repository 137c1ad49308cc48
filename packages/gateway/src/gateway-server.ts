import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { monotonicClock } from '@carpool/core'
import { nameIn } from './request-decoder.ts'
import { Turnstile } from './turnstile.ts'

/** How long a connection without a request stays open, in ms: longer than the 60 s of most load balancers, or they would send into its end. */
const KEEP_ALIVE_MS = 72_000
/** How long requests may be handed on in one turn of the event loop, in ms. */
const REQUESTS_MS = 2
/** How long connections may be opened for reading again in one turn, in ms: a hundred or so, whose requests take about a millisecond to read. */
const READS_MS = 0.2
/** A shorter wait is none, in ms. */
const NOTABLE_MS = 0.1

/**
 * The HTTP server under the gateway. By itself it would read all requests that the sockets have before it looks at anything else, and do all their
 * work: a call that comes behind those of a thousand connections waits for all of them. So it hands on so many in a turn of the event loop, of each
 * function one in turn; and while there is more than that, a connection is read again after its answer only when its turn has come.
 */
export class GatewayServer {
  readonly #requests = new Turnstile({ turnMs: REQUESTS_MS, clock: monotonicClock, nextTurn: setImmediate })
  readonly #reads = new Turnstile({ turnMs: READS_MS, clock: monotonicClock, nextTurn: setImmediate })
  readonly #waitedMs = new WeakMap<IncomingMessage, number>()

  create(handler: RequestListener): Server {
    return createServer({ keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0 }, (request, response) => {
      const cameAtMs = monotonicClock()
      const functionName = nameIn(request.url ?? '')
      if (this.#requests.isBusy || this.#reads.isBusy) this.#pauseAfter(request, response, functionName)
      this.#requests.enter(functionName, () => {
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

  #pauseAfter({ socket }: IncomingMessage, response: ServerResponse, functionName: string): void {
    response.once('finish', () => {
      if (socket.destroyed) return
      socket.pause()
      this.#reads.enter(functionName, () => socket.resume())
    })
  }
}
