import { monotonicClock, type Clock } from '@carpool/core'

/** A step of the time of day that is no mere correction. */
const JUMP_MS = 60_000

/**
 * The time of day by which old rows are deleted, in ms of the epoch. If the clock jumps forward while the server runs, this one goes on as
 * before, for what is deleted does not come back when the clock is set right; a jump that was right is taken over by the next start. It
 * follows the clock when that is set back.
 */
export function retentionClock(now: () => number, clock: Clock = monotonicClock): () => number {
  let offsetMs = now() - clock()
  return () => {
    const timeMs = now()
    const steadyMs = clock() + offsetMs
    if (timeMs - steadyMs < JUMP_MS) offsetMs = timeMs - clock()
    return Math.min(timeMs, clock() + offsetMs)
  }
}
