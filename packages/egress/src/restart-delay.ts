import { backoffMs } from '@carpool/core'

const MAX_DELAY_MS = 5_000
/** A thread that lived for so long ended for a reason of its own. */
const STEADY_MS = 60_000

export interface ThreadDeaths {
  /** Threads that ended in a row, each of them soon after its start. */
  readonly inARow: number
  /** How long no other may be started. */
  readonly delayMs: number
}

/** What follows from the end of a thread: the next fetch may start another at once, then ever later if they keep ending. */
export function afterDeath(before: ThreadDeaths | undefined, livedMs: number): ThreadDeaths {
  const inARow = before === undefined || livedMs >= STEADY_MS ? 1 : before.inARow + 1
  return { inARow, delayMs: backoffMs(inARow, MAX_DELAY_MS) }
}
