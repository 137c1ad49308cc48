/** What is known of a running stay may be this much too high where there is no clock of entries, in ms of CPU. */
export const ESTIMATE_SLACK_MS = 10
/** No more than this is billed beyond a CPU limit, in ms. */
export const BILLED_GRACE_MS = 50
/** An entry may go on for this long past the wall limit, in ms: most come to an end by themselves. */
export const WALL_GRACE_MS = 25

export interface StaySample {
  /** CPU time that the invocation used before the stay, in ms; 0 for work that nobody waits for, which is limited entry by entry. */
  readonly spentMs: number
  /** CPU time that it has used in the stay besides, in ms. */
  readonly usedMs: number
  /** Since the stay began, in ms. */
  readonly ranMs: number
  readonly cpuLimitMs: number
  readonly wallLimitMs: number
}

/** Whether the entry that runs has to be ended: for the CPU time of its invocation, or because it is stuck. */
export function judgeStay({ spentMs, usedMs, ranMs, cpuLimitMs, wallLimitMs }: StaySample): 'fine' | 'over-cpu' | 'stuck' {
  if (spentMs + usedMs >= cpuLimitMs + ESTIMATE_SLACK_MS) return 'over-cpu'
  return ranMs >= wallLimitMs + WALL_GRACE_MS ? 'stuck' : 'fine'
}
