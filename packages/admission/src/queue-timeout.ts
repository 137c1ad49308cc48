/** What is known of the queue when somebody asks how long a call may wait in it. */
export interface QueueState {
  /** Whether there is evidence of a full CPU: the p90 run delay of all hosts was above its target within the last second. */
  readonly isOverloaded: boolean
  /** Time since the queue was last empty, in ms; 0 if it is. */
  readonly stoodMs: number
  /** Mean time between two calls that leave the queue for a host, in ms. */
  readonly gapMs: number
}

export interface QueueTimeoutPolicy {
  /** Wait that is still good when the queue stands, in ms. */
  readonly targetMs: number
  /** How long the queue may stand before that becomes the timeout, in ms. */
  readonly intervalMs: number
  /** Longest wait without overload, in ms. */
  readonly maxQueueMs: number
}

/**
 * How long a call may wait in the queue, in ms.
 *
 * Without a full CPU `maxQueueMs`: what is waited for then is no core but, say, a function that loads, and refusing calls would free nothing.
 * Under overload `intervalMs`, and `targetMs` once the queue has stood for that long, as in "Fail at Scale" (Maurer, ACM Queue 2015): a burst
 * passes, a queue that does not empty is cut short, and who is refused learns it soon. Never less than `gapMs`, or calls that take longer than
 * the target would all be refused (RFC 8289, 4.3: the target is at least the time that one packet takes). A longer interval for such calls
 * was tried in simulation: with 4 or 20 gaps no more is answered, and what is refused waits for seconds.
 */
export function queueTimeoutMs(
  { isOverloaded, stoodMs, gapMs }: QueueState,
  { targetMs, intervalMs, maxQueueMs }: QueueTimeoutPolicy,
): number {
  if (!isOverloaded) return maxQueueMs
  return Math.min(Math.max(stoodMs < intervalMs ? intervalMs : targetMs, gapMs), maxQueueMs)
}

/** Which call of a function leaves the queue first. */
export type QueueOrder = 'oldest' | 'newest'

/** Newest first while the queue stands under overload, for the newest are those that can still be served in time; else oldest first. */
export function takeOrder(
  { isOverloaded, stoodMs }: Pick<QueueState, 'isOverloaded' | 'stoodMs'>,
  { intervalMs }: Pick<QueueTimeoutPolicy, 'intervalMs'>,
): QueueOrder {
  return isOverloaded && stoodMs >= intervalMs ? 'newest' : 'oldest'
}
