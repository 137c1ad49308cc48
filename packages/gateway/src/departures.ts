import type { Socket } from 'node:net'
import type { Cancellation } from '@carpool/core'

/** The invocations of one connection whose answers are still to come. */
interface OnConnection {
  readonly waiting: Set<Cancellation>
  newest: Cancellation
}

/**
 * Tells invocations that their client has left. One listener for each connection: a listener for each request, put on and taken off again,
 * takes longer than most other steps of the gateway. There may be several invocations on one connection, because of pipelining.
 */
export class Departures {
  readonly #connections = new WeakMap<Socket, OnConnection>()

  /**
   * The cancellation is told when the connection closes; at once if it has.
   * @returns how many are watched on the connection, with this one
   */
  watch(socket: Socket, cancellation: Cancellation): number {
    if (socket.destroyed) cancellation.cancel()
    const known = this.#connections.get(socket)
    if (known !== undefined) {
      known.newest = cancellation
      return known.waiting.add(cancellation).size
    }
    const waiting = new Set([cancellation])
    this.#connections.set(socket, { waiting, newest: cancellation })
    socket.once('close', () => {
      for (const one of waiting) one.cancel()
    })
    return waiting.size
  }

  /** Whether no later request has come on the connection, so that it may be closed behind this one's answer. */
  isNewest(socket: Socket, cancellation: Cancellation): boolean {
    return this.#connections.get(socket)?.newest === cancellation
  }

  /** The answer is on its way: nobody waits for the invocation any more. */
  unwatch(socket: Socket, cancellation: Cancellation): void {
    this.#connections.get(socket)?.waiting.delete(cancellation)
  }
}
