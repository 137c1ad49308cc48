/** What runs in a host, seen from one function. Running are invocations that were neither answered nor wait for a timer or a fetch. */
export interface HostRoom {
  /** Of all functions. */
  readonly running: number
  /** The host's limit of them. */
  readonly limit: number
  /** Of this function. */
  readonly ofFunction: number
  /** How many functions run or wait there, this one included. */
  readonly functions: number
  /** CPU time that what runs there and this call are expected to use, in ms; infinite if that is not known. */
  readonly workMs: number
  /** p90 run delay that is good, in ms. */
  readonly targetMs: number
}

/**
 * Whether a host may be sent one more invocation of a function: below the host's limit always; at it as long as all that runs there is no more
 * work than the target, for then many short calls wait for each other no longer than they may, and what made them wait was somebody else
 * (measured: with the limit alone, a host that used 0.15 of a core let 700 calls of 30 µs stand in the queue, because the load generator kept the
 * cores busy and entries had to wait for one); and as long as the function itself runs
 * less there than its equal share of the limit, at least 1. So a flood of one function never shuts another out; a host may pass its
 * limit by that, at most to twice the limit or the number of functions, whichever is more.
 */
export function hasRoom({ running, limit, ofFunction, functions, workMs, targetMs }: HostRoom): boolean {
  if (running < limit || workMs <= targetMs) return true
  return ofFunction < Math.max(1, Math.floor(limit / Math.max(1, functions)))
}
