import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '@carpool/core'
import type { ByteBudget } from './byte-budget.ts'
import { isTaken } from './is-taken.ts'
import type { Sweep } from './sweep.ts'

export interface UnreadAnswersOptions {
  readonly sweep: Sweep
  readonly budget: ByteBudget
  readonly clock: Clock
  /** Longest time in which a client may take nothing, in ms. */
  readonly timeoutMs: number
}

/** Answers that wait in memory because their clients do not read: counted, and given up with the connection when nothing moves. */
export class UnreadAnswers {
  readonly #options: UnreadAnswersOptions

  constructor(options: UnreadAnswersOptions) {
    this.#options = options
  }

  /** An answer was written; watches it unless the system has taken it already. */
  watch(socket: Socket, response: ServerResponse, bodyBytes: number): void {
    if (isTaken(response)) return
    const { sweep, budget, clock, timeoutMs } = this.#options
    const isOver = (): boolean => isTaken(response) || socket.destroyed
    const holding = budget.open(() => {
      if (!isOver()) socket.destroy()
    })
    holding.add(bodyBytes)
    let taken = takenBytes(socket)
    let movedAtMs = clock()
    sweep.add((nowMs) => {
      if (isOver()) {
        holding.release()
        return true
      }
      const takenNow = takenBytes(socket)
      if (takenNow !== taken) {
        taken = takenNow
        movedAtMs = nowMs
      } else if (nowMs - movedAtMs >= timeoutMs) socket.destroy()
      return false
    })
  }
}

/** How much of what was written to a connection the system has taken since it was opened, in bytes. */
function takenBytes(socket: Socket): number {
  return socket.bytesWritten - socket.writableLength
}
