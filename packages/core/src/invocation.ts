import type { ErrorCode } from './errors.ts'
import type { HttpResponse } from './http.ts'
import type { FailedOutcome, Outcome } from './outcome.ts'
import type { InvocationUsage } from './usage.ts'

export type Trigger = 'http' | 'cli'

/**
 * What an invocation found in its host:
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

/**
 * The record of one invocation: its outcome and what it used. There is exactly one for each call of a function that exists, also
 * for a call that was refused, unless the gateway refused it before its function was known. Times are measured on monotonic
 * clocks; only `startedAtMs` is the time of day.
 */
export interface InvocationRecord extends InvocationUsage {
  /** UUID, version 7: ids of one server sort by the time of their call. */
  readonly id: string
  readonly functionName: string
  readonly revision: string
  readonly owner: string
  readonly trigger: Trigger
  /** When the call came, in ms of the epoch. */
  readonly startedAtMs: number
  /** `warm` for a call that was refused. */
  readonly start: StartKind
  /** `refused`: no user code ran, for the reason that `error` names. */
  readonly outcome: Outcome | 'refused'
  readonly error?: ErrorCode
  /** Status of the HTTP answer, also of one that streamed and broke off; 499 if the client had left before. */
  readonly status: number
  /** Id of the host process; 0 if none took it. */
  readonly host: number
  /** From the call to its handing over to a host, in µs. */
  readonly queueUs: number
  /** From the call to its outcome, in µs; queueing and init included. */
  readonly wallUs: number
  /** Memory limit of the function, in MiB. */
  readonly memoryMb: number
  /** Body of the request, or messages of the client over a WebSocket, in bytes; of what streams, what the function was given. */
  readonly bytesIn: number
  /** Body of the answer, or messages to the client, in bytes; 0 unless the function gave it. */
  readonly bytesOut: number
  /** From the head of an answer that streams, or of an accepted WebSocket, to its end, in µs; 0 for an answer that came whole. */
  readonly openUs: number
}

/** Time in which user code ran or waited, in µs: wall time without queueing and init. */
export function execUs({ wallUs, queueUs, initUs }: Pick<InvocationRecord, 'wallUs' | 'queueUs' | 'initUs'>): number {
  return Math.max(0, wallUs - queueUs - initUs)
}
