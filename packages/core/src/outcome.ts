interface OutcomeEntry {
  /** HTTP status of an invocation that ended so; null: the function's own response is passed on. */
  readonly status: number | null
  readonly title: string
}

/**
 * How a call ended. Each that a host took has exactly one outcome, and is metered; so has one whose client left before.
 *
 * - `ok`: the handler returned a response.
 * - `exception`: the handler threw or rejected.
 * - `load-failed`: the module scope threw, so the handler never ran.
 * - `invalid-response`: the handler returned something that is no response.
 * - `timeout`: the wall limit passed before an answer.
 * - `cpu-exceeded`: the call passed its CPU limit. If its entry was running, its isolate was disposed.
 * - `memory-exceeded`: the isolate passed its memory limit and was disposed.
 * - `isolate-lost`: the isolate was disposed for what another invocation of the same function did.
 * - `canceled`: the client left before the answer.
 * - `host-lost`: the host process died with the invocation in it.
 */
export const OUTCOMES = {
  'ok': { status: null, title: 'The function answered' },
  'exception': { status: 500, title: 'The function threw an error' },
  'load-failed': { status: 500, title: 'The function failed to load' },
  'invalid-response': { status: 502, title: 'The function returned no valid response' },
  'timeout': { status: 504, title: 'The function did not answer within its wall limit' },
  'cpu-exceeded': { status: 502, title: 'The function passed its CPU limit' },
  'memory-exceeded': { status: 502, title: 'The function passed its memory limit' },
  'isolate-lost': { status: 502, title: 'The isolate of the function was ended by another of its invocations' },
  'canceled': { status: 499, title: 'The client left before the answer' },
  'host-lost': { status: 502, title: 'The host process of the function died' },
} as const satisfies Record<string, OutcomeEntry>

export type Outcome = keyof typeof OUTCOMES
export type FailedOutcome = Exclude<Outcome, 'ok'>
