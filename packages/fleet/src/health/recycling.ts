/**
 * When a host process is replaced although nothing is wrong with it: memory that was broken up does not go back to the system, and what was corrupted
 * once without a crash should not live for ever (facts on isolated-vm: two open reports of damaged heaps after long use).
 */
export interface RecyclingPolicy {
  /** Longest time that a host serves, in ms; 0: no limit. */
  readonly maxAgeMs: number
  /** Most invocations that it takes; 0: no limit. */
  readonly maxInvocations: number
}

/** Hosts that were started together must not all leave together: each leaves up to so much earlier. */
const SPREAD = 0.2

/**
 * Whether a host has had its time.
 * @param host its age in ms, and the invocations that it has taken
 * @param lot where in the spread this host falls: 0 to 1, the same each time it is asked
 */
export function isDueForRecycling(
  { ageMs, invocations, lot }: { readonly ageMs: number; readonly invocations: number; readonly lot: number },
  { maxAgeMs, maxInvocations }: RecyclingPolicy,
): boolean {
  const share = 1 - SPREAD * lot
  return (maxAgeMs > 0 && ageMs >= maxAgeMs * share) || (maxInvocations > 0 && invocations >= maxInvocations * share)
}
