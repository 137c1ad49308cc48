const FIRST_DELAY_MS = 100

/**
 * How long to wait before something that failed is started again, in ms: not at all after the first failure, then 100 ms,
 * twice as long after each further one, at most `maxMs`. So one failure costs nothing, and what cannot live does not keep the
 * machine busy with starting it.
 * @param failuresInRow 1 or more; what counts as a failure, and what ends the row, is up to the caller
 */
export function backoffMs(failuresInRow: number, maxMs: number): number {
  return failuresInRow <= 1 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (failuresInRow - 2), maxMs)
}
