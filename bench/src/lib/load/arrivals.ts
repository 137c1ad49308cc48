/** When calls are due, in ms after the beginning of a load. */

/** All at the same moment. */
export function arrivalsAtOnce(count: number): Float64Array {
  return new Float64Array(count)
}

/** One phase of a load: a rate that holds for a while. */
export interface Phase {
  readonly callsPerSecond: number
  readonly durationMs: number
}

/**
 * Evenly spaced calls at the rate of each phase, one phase after the other. Within a phase call n is due after n gaps, the
 * first at once.
 */
export function evenArrivals(phases: readonly Phase[]): Float64Array {
  const dueMs: number[] = []
  let beginMs = 0
  for (const { callsPerSecond, durationMs } of phases) {
    const count = Math.round((callsPerSecond * durationMs) / 1000)
    for (let call = 0; call < count; call++) dueMs.push(beginMs + (call * durationMs) / count)
    beginMs += durationMs
  }
  return Float64Array.from(dueMs)
}

/**
 * Poisson arrivals of which the count in each interval is known: given their count, the points of a Poisson process lie
 * independently and uniformly in the interval (Ross, Introduction to Probability Models, section 5.3.5).
 * @param random uniform in [0, 1)
 */
export function poissonArrivals(counts: readonly number[], intervalMs: number, random: () => number): Float64Array {
  const dueMs = new Float64Array(counts.reduce((sum, count) => sum + count, 0))
  let filled = 0
  for (const [interval, count] of counts.entries()) {
    for (let call = 0; call < count; call++) dueMs[filled + call] = (interval + random()) * intervalMs
    dueMs.subarray(filled, filled + count).sort()
    filled += count
  }
  return dueMs
}
