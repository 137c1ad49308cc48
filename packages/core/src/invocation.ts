import type { Cancellation } from './cancellation.ts'
import type { HttpRequest, HttpResponse } from './http.ts'
import type { FailedOutcome } from './outcome.ts'

export type Trigger = 'http' | 'cli'

/** One call, before it is known whether its function exists. */
export interface InvocationRequest {
  readonly functionName: string
  readonly trigger: Trigger
  readonly request: HttpRequest
  /** Told when the client leaves. */
  readonly cancellation: Cancellation
}

/** How the isolate that ran an invocation came to be: it was there (`warm`), or was made for this call. */
export type StartKind = 'warm' | 'isolate-cold'

/** How user code ended, with its response if it gave one. */
export type InvocationResult =
  | { readonly outcome: 'ok'; readonly start: StartKind; readonly response: HttpResponse }
  | {
      readonly outcome: FailedOutcome
      readonly start: StartKind
      /** For the caller: what happened, with the limit that was passed. */
      readonly detail: string
      /** For the function's log: message and stack, in positions of the bundle. */
      readonly stack?: string
    }

/** What came of an invocation that was admitted. */
export interface FinishedInvocation {
  readonly id: string
  readonly result: InvocationResult
}

/** Runs one invocation from routing to metering. @throws CarpoolError if it is refused before user code could run. */
export type Invoke = (request: InvocationRequest) => Promise<FinishedInvocation>
