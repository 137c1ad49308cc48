/** A host that lived this long was healthy: its end does not count as another failure in a row. */
export const HEALTHY_AFTER_MS = 10_000
const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 10_000

/**
 * How long to wait before a host that died is replaced, in ms: not at all for the first, then twice as long for each one that died soon
 * after its start, so that a host that cannot live does not keep the machine busy with forking.
 * @param deathsInRow hosts that died within {@link HEALTHY_AFTER_MS} of their start, with no healthy one between them
 */
export function respawnDelayMs(deathsInRow: number): number {
  if (deathsInRow <= 1) return 0
  return Math.min(FIRST_DELAY_MS * 2 ** (deathsInRow - 2), MAX_DELAY_MS)
}
