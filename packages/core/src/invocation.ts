import type { HttpResponse } from './http.ts'
import type { FailedOutcome } from './outcome.ts'
import type { InvocationUsage } from './usage.ts'

export type Trigger = 'http' | 'cli'

/**
 * What an invocation found when it came:
 *
 * - `warm`: an isolate with its function loaded.
 * - `isolate-cold`: a host in which its revision had run, but no isolate.
 * - `host-cold`: a host in which its revision had not run yet.
 * - `function-cold`: the same, and the revision had never run anywhere.
 */
export const START_KINDS = ['warm', 'isolate-cold', 'host-cold', 'function-cold'] as const
export type StartKind = (typeof START_KINDS)[number]

/** How user code ended, with its response if it gave one. */
export type InvocationResult = (
  | { readonly outcome: 'ok'; readonly response: HttpResponse }
  | {
      readonly outcome: FailedOutcome
      /** For the caller: what happened, with the limit that was passed. */
      readonly detail: string
      /** For the function's log: message and stack, in positions of the bundle. */
      readonly stack?: string
      /** With `host-lost`: the function's own code may have brought the host down. */
      readonly isSuspect?: boolean
    }
) & {
  readonly start: StartKind
  readonly usage: InvocationUsage
}
