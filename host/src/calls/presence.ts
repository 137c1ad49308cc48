import { monotonicClock, type Clock } from '@carpool/core'
import { AWAY_MS } from '@carpool/wire'
import type { Send } from '../send.ts'

/**
 * Notices that the process stood still as a whole: stopped, swapped out, or frozen with its control group. Meanwhile the server
 * may have taken back the invocations that lie unread in the socket (`packages/fleet/src/health/standstill.ts`), to begin them
 * elsewhere. So none of what is read after that begins here, until the server has said where what it sent since begins.
 */
export class Presence {
  readonly #send: Send
  readonly #clock: Clock
  #lookedAtMs: number
  /** How often it was away, */
  #absences = 0
  /** and after how many of these times the server has answered. */
  #resumed = 0

  constructor(send: Send, clock: Clock = monotonicClock) {
    this.#send = send
    this.#clock = clock
    this.#lookedAtMs = clock()
  }

  /**
   * Called before each invocation begins, and ten times a second, so that a long time between two looks means that the process
   * was away.
   * @returns whether what is read now may begin
   */
  look(): boolean {
    const nowMs = this.#clock()
    if (nowMs - this.#lookedAtMs >= AWAY_MS) this.#send({ type: 'away', absence: ++this.#absences })
    this.#lookedAtMs = nowMs
    return this.#resumed === this.#absences
  }

  resume(absence: number): void {
    this.#resumed = absence
  }
}
