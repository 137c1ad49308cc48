/** How long a guest has to confirm a cancel before it counts as silent, in ms. */
export const STALL_GRACE_MS = 250

export interface StallSample {
  readonly nowMs: number
  /** When the guest last called the host. */
  readonly heardAtMs: number
  /** When the cancel was sent that the guest has to confirm. */
  readonly canceledAtMs: number
  readonly wallMs: number
}

/**
 * Whether an isolate is stuck in user code, looked at when an invocation in it has passed its wall limit and was told so. `alive`: the guest
 * gets round to its entries. `stuck`: it has been silent for a whole wall limit, so that no entry still within its own limit can be what
 * holds it up. Else: look again after so many ms, since the entry that runs now may have begun late.
 */
export function judgeStall({ nowMs, heardAtMs, canceledAtMs, wallMs }: StallSample): 'alive' | 'stuck' | number {
  if (heardAtMs > canceledAtMs) return 'alive'
  const remainingMs = heardAtMs + wallMs + STALL_GRACE_MS - nowMs
  return remainingMs <= 0 ? 'stuck' : remainingMs
}
