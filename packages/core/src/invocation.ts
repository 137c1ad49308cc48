import type { Cancellation } from './cancellation.ts'
import type { HttpRequest, HttpResponse } from './http.ts'
import type { InvocationRecord } from './invocation-record.ts'
import type { FailedOutcome } from './outcome.ts'
import type { InvocationUsage } from './usage.ts'

export type Trigger = 'http' | 'cli'

/** One call, before it is known whether its function exists. */
export interface InvocationRequest {
  /** UUID, version 7. */
  readonly id: string
  readonly functionName: string
  readonly trigger: Trigger
  readonly request: HttpRequest
  /** Told when the client leaves. */
  readonly cancellation: Cancellation
  /** How long it has been in the server before, in ms. Default: 0. */
  readonly waitedMs?: number
  /** How many functions called each other until it came: each of them waits for the next one, or did. Default: 0. */
  readonly hops?: number
}

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

/** What came of an invocation that was admitted. */
export interface FinishedInvocation {
  readonly result: InvocationResult
  /** As it stands in the ledger. */
  readonly record: InvocationRecord
}

/** Runs one invocation from routing to metering. @throws CarpoolError if it is refused before user code could run. */
export type Invoke = (request: InvocationRequest) => Promise<FinishedInvocation>
