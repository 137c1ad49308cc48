import { ERRORS, type ErrorCode } from './errors.ts'

const RETRY_AFTER_SECONDS = 1

/**
 * The value of `Retry-After` with which an error is answered: every 429 has one, and every 503 that may pass by itself.
 *
 * A saturated server answers many callers at once. Half of them get a second more, so that they do not come back together.
 * @param random from 0 to below 1, as `Math.random`
 * @returns whole seconds; undefined if the same call would be answered the same way later
 */
export function retryAfterSeconds(code: ErrorCode, random: () => number): number | undefined {
  if (!ERRORS[code].retryable) return undefined
  return code === 'saturated' ? RETRY_AFTER_SECONDS + Math.round(random()) : RETRY_AFTER_SECONDS
}
