/** What bounds how long slow clients hold something: one timer for all checks, timeouts of answers, and closes that linger. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '@carpool/core'
import type { ByteBudget } from '../byte-budget.ts'
import { stopReading } from './stop-reading.ts'

/** @returns whether it is over and need not be called again */
export type Check = (nowMs: number) => boolean

const SWEEP_MS = 100

/**
 * Runs checks periodically, on one timer that exists only while there are checks. The timer keeps the process alive: a connection
 * that is not read does not.
 */
export class Sweep {
  readonly #clock: Clock
  readonly #checks = new Set<Check>()
  #timer: NodeJS.Timeout | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(check: Check): void {
    this.#checks.add(check)
    this.#timer ??= setInterval(() => this.#run(), SWEEP_MS)
  }

  remove(check: Check): void {
    this.#checks.delete(check)
  }

  #run(): void {
    const nowMs = this.#clock()
    for (const check of this.#checks) if (check(nowMs)) this.#checks.delete(check)
    if (this.#checks.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** Whether the system has taken all of an answer, so that nothing of it is in memory here; `finish` comes in a later turn. */
export function isFlushed(response: ServerResponse): boolean {
  return response.writableEnded && response.writableLength === 0
}

export interface WriteStallOptions {
  readonly sweep: Sweep
  readonly budget: ByteBudget
  readonly clock: Clock
  /** Longest time in which a client may take nothing, in ms. */
  readonly timeoutMs: number
}

/**
 * Counts the answers that wait in memory because their clients do not read, and closes a connection whose client has stopped
 * reading.
 */
export class WriteStallTimeout {
  readonly #options: WriteStallOptions

  constructor(options: WriteStallOptions) {
    this.#options = options
  }

  /**
   * Called when an answer was written; before that as well where it may stream.
   * @param bodyBytes to count, until they have left
   */
  watch(socket: Socket, response: ServerResponse, bodyBytes: number): void {
    if (isFlushed(response)) return
    const { sweep, budget, clock, timeoutMs } = this.#options
    const isOver = (): boolean => isFlushed(response) || socket.destroyed
    const reservation = budget.open(() => {
      if (!isOver()) socket.destroy()
    })
    reservation.add(bodyBytes)
    let flushed = flushedBytes(socket)
    let progressAtMs = clock()
    sweep.add((nowMs) => {
      if (isOver()) {
        reservation.release()
        return true
      }
      const flushedNow = flushedBytes(socket)
      // Nothing is there to be taken of an answer that is not written, or that waits behind another on its connection.
      if (flushedNow !== flushed || socket.writableLength === 0) {
        flushed = flushedNow
        progressAtMs = nowMs
      } else if (nowMs - progressAtMs >= timeoutMs) socket.destroy()
      return false
    })
  }
}

/** How much the system has taken of what was written to a connection since it was opened, in bytes. */
function flushedBytes(socket: Socket): number {
  return socket.bytesWritten - socket.writableLength
}

/** How long a client may read why its connection is closed, in ms. */
const LINGER_MS = 500
/** Connections that may linger at the same time. */
const MAX_LINGERING = 256

/**
 * Closes connections on which something is unread. The system resets a connection that is closed with unread bytes, and the reset
 * may overtake the last answer (RFC 9112, section 9.6). So our side is closed at once, and the connection a moment later; nothing
 * more is read meanwhile.
 */
export class LingeringClose {
  readonly #sweep: Sweep
  readonly #clock: Clock
  #count = 0

  constructor(sweep: Sweep, clock: Clock) {
    this.#sweep = sweep
    this.#clock = clock
  }

  /** Closes the connection behind what was written to it. */
  close(socket: Socket): void {
    socket.end()
    if (this.#count >= MAX_LINGERING) return socket.destroySoon()
    this.#count++
    const endsAtMs = this.#clock() + LINGER_MS
    stopReading(socket)
    this.#sweep.add((nowMs) => {
      if (!socket.destroyed && nowMs < endsAtMs) return false
      socket.destroy()
      this.#count--
      return true
    })
  }
}
