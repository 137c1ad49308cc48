/**
 * Splits the CPU time of one stay in an isolate between the entries that ran in it, in proportion to how long each took. The parts are whole
 * numbers and add up to the total exactly.
 *
 * The total is exact; the proportions are times of day, so a thread that lost its core in the middle of an entry makes that one's part too
 * large. No part can be wrong by more than the total, which is why few entries share a stay when they take long: see {@link StaySize}.
 * @param totalNs a whole number, not negative
 * @param count of the entries, 1 or more
 * @param spans how long each took, in any unit; if they are not as many as the entries, or not usable, the parts are equal
 */
export function splitCpu(totalNs: number, count: number, spans: readonly number[] = []): number[] {
  if (count === 1) return [totalNs]
  const weights = areUsable(spans, count) ? spans : Array<number>(count).fill(1)
  const whole = weights.reduce((sum, span) => sum + span, 0)
  let passed = 0
  let given = 0
  return weights.map((span, index) => {
    passed += span
    // Cutting the total at rounded points, instead of rounding the parts, keeps the sum.
    const upTo = index === count - 1 ? totalNs : Math.min(totalNs, Math.round((totalNs * passed) / whole))
    const part = upTo - given
    given = upTo
    return part
  })
}

/** Thirty years in ns: sums of such spans are still exact enough. */
const MAX_SPAN = 1e18

function areUsable(spans: readonly number[], count: number): boolean {
  return spans.length === count && spans.every((span) => span >= 0 && span < MAX_SPAN) && spans.some((span) => span > 0)
}
