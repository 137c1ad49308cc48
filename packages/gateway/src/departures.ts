import type { Socket } from 'node:net'
import type { Cancellation } from '@carpool/core'

/**
 * Tells invocations that their client has left. One listener for each connection: a listener for each request, put on and taken off again,
 * takes longer than most other steps of the gateway. There may be several invocations on one connection, because of pipelining.
 */
export class Departures {
  readonly #waiting = new WeakMap<Socket, Set<Cancellation>>()

  /**
   * The cancellation is told when the connection closes; at once if it has.
   * @returns how many are watched on the connection, with this one
   */
  watch(socket: Socket, cancellation: Cancellation): number {
    if (socket.destroyed) cancellation.cancel()
    const waiting = this.#waiting.get(socket)
    if (waiting !== undefined) return waiting.add(cancellation).size
    const first = new Set([cancellation])
    this.#waiting.set(socket, first)
    socket.once('close', () => {
      for (const one of first) one.cancel()
    })
    return first.size
  }

  /** The answer is on its way: nobody waits for the invocation any more. */
  unwatch(socket: Socket, cancellation: Cancellation): void {
    this.#waiting.get(socket)?.delete(cancellation)
  }
}
