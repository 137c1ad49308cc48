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
}

/**
 * Whether a host may be sent one more invocation of a function: below the host's limit always, and at it as long as the function itself runs
 * less there than its equal share of the limit, at least 1. So a flood of one function never shuts another out; a host may pass its
 * limit by that, at most to twice the limit or the number of functions, whichever is more.
 */
export function hasRoom({ running, limit, ofFunction, functions }: HostRoom): boolean {
  return running < limit || ofFunction < Math.max(1, Math.floor(limit / Math.max(1, functions)))
}
