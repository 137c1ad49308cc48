/**
 * Which host may be sent a call, and which of those is. Pure functions, asked for every call that is placed.
 *
 * A flow is the calls of one function. In one host they share an isolate, which runs one thing at a time.
 */

export interface HostCandidate {
  /** Whether it may be sent another call of the function. */
  readonly hasRoom: boolean
  /** Whether the function ran there before. */
  readonly isWarm: boolean
  /** What an entry of a function that runs nothing else there waits lately, in ms. */
  readonly sharedDelayMs: number
  /** Calls of the function that run there. */
  readonly ofFunction: number
  readonly running: number
}

/** What a host loses by having to load the function first, in ms: making an isolate takes 2 to 20 ms, by the size of the code. */
const COLD_MS = 20

/**
 * Which host runs a call, of those with room: the one where it will run soonest. The calls of its flow there are ahead of it,
 * each with its usual cost; the shared delay says what those of others add. Between equals the one with less running, then
 * the first: calls that need next to no CPU stay together, so that the other hosts can leave.
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

/** What runs in a host, seen from one function: calls that hold a slot, and those that want to go on after a wait. */
export interface HostRoom {
  /** Of all functions. */
  readonly running: number
  /** The host's limit of them. */
  readonly limit: number
  /** Of this function. */
  readonly ofFunction: number
  /** How many owners' functions run or wait there, this one's included. */
  readonly owners: number
  /** How many functions of its owner do, this one included. */
  readonly functions: number
  /** CPU time that what runs there and this call are expected to use, in ms; infinite if that is not known. */
  readonly workMs: number
  /** p90 run delay that is good, in ms. */
  readonly targetMs: number
}

/**
 * Whether the host's limit leaves room for one more call of a function:
 *
 * - below the limit always;
 * - at it, as long as all that runs there is no more work than the target: then many short calls wait for each other no
 *   longer than they may, and what made them wait was somebody else. With the limit alone, a host that used 0.15 of a core
 *   let 700 calls of 30 µs stand in the queue, because the load generator kept the cores busy and entries had to wait for
 *   one;
 * - at it, as long as the function runs less there than its share of the limit, at least 1: an equal part of that of its owner,
 *   which is an equal part of the limit. So a flood of one function never shuts another out, and many functions of one owner take
 *   no more than one of another. A host may pass its limit by that, at most to twice the limit or the number of functions,
 *   whichever is more.
 */
export function hasRoom({ running, limit, ofFunction, owners, functions, workMs, targetMs }: HostRoom): boolean {
  if (running < limit || workMs <= targetMs) return true
  return ofFunction < Math.max(1, Math.floor(limit / Math.max(1, owners) / Math.max(1, functions)))
}

/** Calls of a function that has not run yet, at the same time: enough to learn what they cost. */
const UNKNOWN_COST_LIMIT = 4
/** How much of the target the calls behind the first may make the last one wait. */
const HEADROOM = 2

/**
 * How many calls of a flow may run in one host: one that runs, and behind it twice the target's worth of CPU time, at least
 * one call. What is sent beyond that only waits, where it can neither be taken back nor be sent to another host.
 *
 * {@link hasRoom} cannot see to that: the host's limit follows the p90 of all entries, of which the few of a slow function
 * are a small share. In simulation a function of 200 ms beside one of 20 µs got 200 calls into its isolate, the last of which
 * waited 40 s.
 *
 * It must stay above the target, or a function that fills its isolate would never show up as run delay above the target, and
 * neither overload nor saturation would be seen.
 *
 * @param costMs CPU time expected of a call until it first waits, or of all of it, in ms; undefined if none has run yet
 * @param targetMs p90 run delay that is good, in ms
 */
export function flowLimit(costMs: number | undefined, targetMs: number): number {
  if (costMs === undefined) return UNKNOWN_COST_LIMIT
  return 1 + Math.max(1, Math.ceil((HEADROOM * targetMs) / Math.max(costMs, 0.001)))
}

/** Share of the wall limit that the CPU time of a flow may fill: calls come back from timers and fetches at any time. */
const CAPACITY_SHARE = 0.5

/**
 * How many calls of a flow may be in one host, those that wait included: as many as their isolate can run to the end within
 * their wall limit. For those that hardly need CPU that is no limit at all; of those that wait and then compute, more would
 * only miss their deadlines.
 *
 * @param costMs usual CPU time of a call, in ms; undefined if it is not known
 */
export function flowCapacity(costMs: number | undefined, wallMs: number): number {
  if (costMs === undefined) return Number.POSITIVE_INFINITY
  return Math.max(2, Math.floor((CAPACITY_SHARE * wallMs) / Math.max(costMs, 0.001)))
}
