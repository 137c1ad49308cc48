import { NO_INVOCATION } from '../bridge.ts'

/**
 * The invocation on whose behalf this entry runs; log lines, timers and fetches are counted to it. Every entry sets it, and all
 * microtasks of an entry run before the next one begins. A continuation of one invocation that another one's entry released is
 * counted to the latter.
 */
export let current = NO_INVOCATION

export function enter(invocation: number): void {
  current = invocation
}
