/** Calls of a function that has not run yet, at the same time: enough to learn what they cost. */
const UNKNOWN_COST_LIMIT = 4
/** How much of the target the calls behind the first may make the last one wait. */
const HEADROOM = 2

/**
 * How many invocations of one function may run in one host: one that runs, and behind it twice the target's worth of CPU time, at least one
 * call. An isolate runs one thing at a time, so what is sent beyond that only waits, where it can neither be taken back nor be sent to another
 * host.
 *
 * The host's own limit cannot see to that: it follows the p90 of all entries, of which the few of a slow function are a small share. In
 * simulation a function of 200 ms beside one of 20 µs got 200 calls into its isolate, the last of which waited 40 s.
 *
 * It must stay above the target, or a function that fills its isolate would never show up as run delay above the target, and neither overload nor
 * saturation would be seen.
 *
 * @param costMs CPU time expected of a call until it first waits, or of all of it, in ms; undefined if none has run yet
 * @param targetMs p90 run delay that is good, in ms
 */
export function laneLimit(costMs: number | undefined, targetMs: number): number {
  if (costMs === undefined) return UNKNOWN_COST_LIMIT
  return 1 + Math.max(1, Math.ceil((HEADROOM * targetMs) / Math.max(costMs, 0.001)))
}

/** Share of the wall limit that the CPU time of what a lane holds may fill: what waits for a timer or a fetch comes back when it likes. */
const CAPACITY_SHARE = 0.5

/**
 * How many invocations of one function may be in one host, those that wait included: as many as its isolate, which runs one thing at a time, can run
 * to the end within their wall limit. For those that hardly need CPU that is no limit at all; of those that wait and then compute, more would only
 * miss their deadlines.
 *
 * @param costMs usual CPU time of a call, in ms; undefined if it is not known
 */
export function laneCapacity(costMs: number | undefined, wallMs: number): number {
  if (costMs === undefined) return Number.POSITIVE_INFINITY
  return Math.max(2, Math.floor((CAPACITY_SHARE * wallMs) / Math.max(costMs, 0.001)))
}
