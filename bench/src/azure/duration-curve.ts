import { PERCENTS } from './sample.ts'

/** The data set has whole ms: a duration of 0 was shorter than one. */
const SHORTEST_MS = 0.5

/**
 * A duration from a percentile curve. Between two known percentiles it is interpolated on a logarithmic scale: durations are
 * spread over orders of magnitude, and in a straight line between the 99th percentile and the longest the mean of this data set
 * comes out a tenth too high (in the middle of its functions; on the logarithmic scale it is two hundredths).
 * @param durationsMs at {@link PERCENTS}; a value below the one before counts as that one
 * @param rank uniform in [0, 1)
 */
export function durationAt(durationsMs: readonly number[], rank: number): number {
  const percent = rank * 100
  const upper = Math.max(
    1,
    PERCENTS.findIndex((known) => known > percent),
  )
  const [from = 0, to = 100] = PERCENTS.slice(upper - 1, upper + 1)
  const rising = durationsMs.slice(0, upper + 1)
  const low = Math.max(SHORTEST_MS, ...rising.slice(0, -1))
  const high = Math.max(low, ...rising)
  return low * (high / low) ** ((percent - from) / (to - from))
}
