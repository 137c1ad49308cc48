import type { Socket } from 'node:net'
import { afterPromises, monotonicClock, RoundRobin } from '@carpool/core'
import type { FastifyRequest } from 'fastify'

/** How long requests may be begun in one turn of the event loop, in ms. Most take less, a list of all functions about that. */
const TURN_MS = 1

/**
 * Begins requests of the control plane for a bounded time in each turn of the event loop, by round robin between owners and then
 * their tokens: else all calls of functions would wait for hundreds of requests that come at once. While a request waits, its
 * connection is not read, so that no more wait than have been read already.
 *
 * The case (F11d in docs/isolation.md): a program that deploys and lists hundreds of times at once.
 */
export class RequestTurns {
  readonly #turns = new RoundRobin({ turnMs: TURN_MS, clock: monotonicClock, nextTurn: setImmediate, afterTask: afterPromises })
  /** How many requests of each connection wait. */
  readonly #waiting = new Map<Socket, number>()

  /** Resolves when the request's turn has come, also if its client has left. */
  async wait({ principal: { owner, tokenId }, raw: { socket } }: Pick<FastifyRequest, 'principal' | 'raw'>): Promise<void> {
    let hasCome = false
    const turn = new Promise<void>((resolve) => {
      this.#turns.enter({ owner, functionName: tokenId }, () => {
        hasCome = true
        resolve()
      })
    })
    if (hasCome) return
    this.#waiting.set(socket, (this.#waiting.get(socket) ?? 0) + 1)
    // Node.js reads on at the end of each request.
    process.nextTick(() => socket.pause())
    await turn
    const left = (this.#waiting.get(socket) ?? 1) - 1
    if (left > 0) return void this.#waiting.set(socket, left)
    this.#waiting.delete(socket)
    socket.resume()
  }
}
