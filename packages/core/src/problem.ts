import { CarpoolError, ERRORS, type ErrorCode } from './errors.ts'
import { OUTCOMES, type FailedOutcome } from './outcome.ts'

/** An RFC 9457 problem document. `code` is stable; the texts are not. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly invocationId?: string
}

export const PROBLEM_CONTENT_TYPE = 'application/problem+json'

/** The answer to a refusal or a fault of ours. */
export function problemOfError(error: CarpoolError): Problem {
  const { status, title } = ERRORS[error.code]
  return { type: `urn:carpool:error:${error.code}`, title, status, code: error.code, detail: error.message }
}

/** The answer to an invocation that ended without a response of its own. */
export function problemOfOutcome(outcome: FailedOutcome, detail: string, invocationId: string): Problem {
  const { status, title } = OUTCOMES[outcome]
  return { type: `urn:carpool:outcome:${outcome}`, title, status, code: outcome, detail, invocationId }
}

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
