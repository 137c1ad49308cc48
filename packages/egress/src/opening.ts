import type { ConnectionSlot } from './connection-slots.ts'
import { failure } from './failure.ts'
import { hasHost } from './host-list.ts'
import type { SocketRequest } from './messages.ts'
import type { Outside } from './outside.ts'

export interface OpeningTarget {
  /** As URLs have it: addresses of IPv6 in brackets. */
  readonly hostname: string
  readonly port: string
  readonly scheme: 'tcp' | 'ws' | 'wss'
  /** Longest time until it is {@link Opening.done}, below that of the server. */
  readonly timeoutMs?: number | undefined
}

/**
 * The right of a socket to its connection, from when it is asked for until the socket is closed, and the time that it has to
 * open.
 */
export class Opening {
  readonly #outside: Outside
  readonly #ending = new AbortController()
  #slot: ConnectionSlot | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(outside: Outside) {
    this.#outside = outside
  }

  /**
   * Resolves when the connection may be made; not any more once it was {@link stop}ped.
   * @param onTimeout called when the time is over
   * @throws failure
   */
  async wait(
    { functionName, owner, hosts }: SocketRequest,
    { hostname, port, scheme, timeoutMs }: OpeningTarget,
    onTimeout: (cause: Error) => void,
  ): Promise<void> {
    const { limits, slots, pool } = this.#outside
    const { signal } = this.#ending
    if (hosts !== undefined && !hasHost(hosts, hostname, port)) throw failure('host-not-listed')
    this.#timer = setTimeout(
      () => onTimeout(failure(this.#slot === undefined ? 'wait-timed-out' : 'timed-out')),
      Math.min(timeoutMs ?? Number.POSITIVE_INFINITY, limits.totalTimeoutMs),
    )
    const slot = await slots.take({ functionName, owner, origin: `${scheme}://${hostname}:${port}` }, signal)
    if (signal.aborted) {
      slot.release()
      signal.throwIfAborted()
    }
    this.#slot = slot
    pool.makeRoom()
    this.#outside.sockets += 1
  }

  /** It is open: its time stops. */
  done(): void {
    clearTimeout(this.#timer)
  }

  /** It waits no longer. */
  stop(cause: Error): void {
    this.#ending.abort(cause)
  }

  /** The socket is closed. */
  close(): void {
    this.done()
    if (this.#slot === undefined) return
    this.#outside.sockets -= 1
    this.#slot.release()
    this.#slot = undefined
  }
}
