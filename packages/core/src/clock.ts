/** A monotonic clock: milliseconds from an arbitrary start, never set back. Policies take it as an argument. */
export type Clock = () => number

export const monotonicClock: Clock = () => performance.now()
