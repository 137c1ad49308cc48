import { CarpoolError, ERRORS } from './errors.ts'
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
