/** The estimate of a running stay may be this much too high, in ms of CPU: nobody is ended before the limit is passed for certain. */
export const ESTIMATE_SLACK_MS = 10
/** No more than this is billed beyond a CPU limit, in ms. */
export const BILLED_GRACE_MS = 50
/** An entry may go on for this long past the wall limit, in ms: most come to an end by themselves. */
export const WALL_GRACE_MS = 25

export interface StaySample {
  /** CPU time that the invocation used before the stay, in ms; 0 for work that nobody waits for, which is limited entry by entry. */
  readonly spentMs: number
  /** CPU time of the stay so far, in ms. */
  readonly estimateMs: number
  /** Since the stay began, in ms. */
  readonly ranMs: number
  readonly cpuLimitMs: number
  readonly wallLimitMs: number
}

/** Whether the entry that runs has to be ended: for the CPU time of its invocation, or because it is stuck. */
export function judgeStay({ spentMs, estimateMs, ranMs, cpuLimitMs, wallLimitMs }: StaySample): 'fine' | 'over-cpu' | 'stuck' {
  if (spentMs + estimateMs >= cpuLimitMs + ESTIMATE_SLACK_MS) return 'over-cpu'
  return ranMs >= wallLimitMs + WALL_GRACE_MS ? 'stuck' : 'fine'
}
