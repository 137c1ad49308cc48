import type { ErrorCode } from './errors.ts'
import type { StartKind, Trigger } from './invocation.ts'
import type { Outcome } from './outcome.ts'
import type { InvocationUsage } from './usage.ts'

/**
 * The record of one invocation: what it came to and what it used. There is exactly one for each call of a function that exists, also for a
 * call that was refused, unless the gateway refused it before it was known whom it was for. Times are measured on monotonic clocks; only `startedAtMs` is the time of day.
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
  /** Status of the HTTP answer; 499 if the client had left. */
  readonly status: number
  /** Id of the host process; 0 if none took it. */
  readonly host: number
  /** From the call to its handing over to a host, in µs. */
  readonly queueUs: number
  /** From the call to its outcome, in µs; queueing and init included. */
  readonly wallUs: number
  /** Memory limit of the function, in MiB. */
  readonly memoryMb: number
  /** Body of the request, in bytes. */
  readonly bytesIn: number
  /** Body of the answer, in bytes; 0 unless the function gave it. */
  readonly bytesOut: number
}

/** Time in which user code ran or waited, in µs: wall time without queueing and init. */
export function execUs({ wallUs, queueUs, initUs }: Pick<InvocationRecord, 'wallUs' | 'queueUs' | 'initUs'>): number {
  return Math.max(0, wallUs - queueUs - initUs)
}
