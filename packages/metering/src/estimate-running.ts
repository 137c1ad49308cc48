/** A stay that has not ended. */
export interface RunningStay {
  /** For how long of the last interval it ran, in ms. */
  readonly ranMs: number
}

/**
 * CPU time that each running stay has used in an interval. An isolate's own clock is of no use while it runs, but the CPU time of the whole
 * process is known: what of it is neither the event loop's nor that of stays which ended in the interval belongs to those that run, and the
 * kernel divides it between their threads evenly. None can have used more than the time that passed.
 *
 * V8's helper threads count as part of what is divided, so the estimate may be too high by what they use, up to the time that passed.
 * @param unclaimedMs CPU time of the process in the interval, without what is known to be others'; may be negative by rounding
 * @returns in ms, one for each stay
 */
export function estimateRunning(unclaimedMs: number, stays: readonly RunningStay[]): number[] {
  const shares = stays.map(() => 0)
  let leftMs = Math.max(0, unclaimedMs)
  // A stay that began late in the interval cannot take its even share; what it leaves is for the others.
  const byRoom = stays.map(({ ranMs }, index) => ({ ranMs: Math.max(0, ranMs), index })).toSorted((a, b) => a.ranMs - b.ranMs)
  for (const [position, { ranMs, index }] of byRoom.entries()) {
    const share = Math.min(ranMs, leftMs / (byRoom.length - position))
    shares[index] = share
    leftMs -= share
  }
  return shares
}
