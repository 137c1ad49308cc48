export interface HostCandidate {
  /** Whether it may take another invocation of the function. */
  readonly hasRoom: boolean
  /** Whether the function ran there before. */
  readonly isWarm: boolean
  /** What an entry of a function that runs nothing else there waits lately, in ms. */
  readonly sharedDelayMs: number
  /** Invocations of the function that run there. */
  readonly ofFunction: number
  readonly running: number
}

/** What a host loses by having to load the function first, in ms: making an isolate takes 2 to 20 ms, by the size of the code. */
const COLD_MS = 20

/**
 * Which host runs an invocation, of those with room: the one where it will run soonest. An isolate runs one thing at a time, so the calls of the
 * same function there are ahead of it, each with its usual cost; the shared delay says what those of others add. Between equals the one
 * with less running, then the first: calls that need next to no CPU stay together, so that the other hosts can leave.
 * @param costMs usual CPU time of a call of the function
 */
export function chooseHost<H extends HostCandidate>(hosts: readonly H[], costMs: number): H | undefined {
  let chosen: H | undefined
  let leastMs = Number.POSITIVE_INFINITY
  for (const host of hosts) {
    if (!host.hasRoom) continue
    const delayMs = host.sharedDelayMs + host.ofFunction * costMs + (host.isWarm ? 0 : COLD_MS)
    if (delayMs > leastMs || (delayMs === leastMs && chosen !== undefined && host.running >= chosen.running)) continue
    chosen = host
    leastMs = delayMs
  }
  return chosen
}
