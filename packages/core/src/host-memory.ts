import { KILL_POLICY } from './kill-ladder.ts'

const MEBIBYTE = 1024 * 1024

export const HOST_MEMORY = {
  /** What all isolates of a host together may take beyond their limits, in bytes, so none of them can take more. */
  stockBytes: 192 * MEBIBYTE,
  /** What a host may take that does not count, or that is within limits, before its watchdog has looked twice, in bytes. */
  besidesBytes: 320 * MEBIBYTE,
} as const

/** The marks of a host's memory, in bytes, in the order in which it reaches them. */
export interface HostMemory {
  /** Above it idle isolates leave. */
  readonly budgetBytes: number
  /** Above it the host is replaced. */
  readonly poisonBytes: number
  /** {@link HOST_MEMORY} */
  readonly stockBytes: number
  /** Above it the system ends the host, where there are control groups: room for all that may come on top. */
  readonly groupBytes: number
}

/** Pure. @param budgetBytes 0: whatever the machine has */
export function hostMemory(budgetBytes: number): HostMemory {
  const { stockBytes, besidesBytes } = HOST_MEMORY
  const poisonBytes = Math.floor(budgetBytes * KILL_POLICY.memoryFactor)
  return { budgetBytes, poisonBytes, stockBytes, groupBytes: poisonBytes + stockBytes + besidesBytes }
}
