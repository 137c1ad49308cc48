import type { Socket } from 'node:net'
import type { Clock } from '@carpool/core'
import type { Sweep } from './sweep.ts'

/** How long a client gets to read why its connection is closed, in ms. */
const LINGER_MS = 500
/** Connections that may be left open for that at the same time. */
const MAX_LINGERING = 256

/**
 * Closes connections on which something is left unread. A connection that is closed with unread bytes is reset, and the reset may overtake
 * the last answer (RFC 9112, section 9.6). So its own side is closed at once, and the client's after a moment in
 * which nothing more is read.
 */
export class Lingering {
  readonly #sweep: Sweep
  readonly #clock: Clock
  #count = 0

  constructor(sweep: Sweep, clock: Clock) {
    this.#sweep = sweep
    this.#clock = clock
  }

  /** Closes the connection behind what was written to it, and for good when its client has, or had the time to read. */
  close(socket: Socket): void {
    socket.end()
    if (this.#count >= MAX_LINGERING) return socket.destroySoon()
    this.#count++
    const endsAtMs = this.#clock() + LINGER_MS
    socket.pause()
    this.#sweep.add((nowMs) => {
      if (!socket.destroyed && nowMs < endsAtMs) return false
      socket.destroy()
      this.#count--
      return true
    })
  }
}
