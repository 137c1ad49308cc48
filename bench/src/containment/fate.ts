import type { FunctionState } from '@carpool/core'
import { endLine, endOf } from '../lib/load/call-summary.ts'
import type { Call } from '../lib/load/load-order.ts'
import type { Verdict } from '../lib/verdict.ts'
import { CLEAN_ENDS } from './offenders.ts'

/** What became of an offender over all its calls. */
export interface OffenderFigures {
  readonly title: string
  readonly ends: string
  /** Whether each call that ran was ended at a limit of its own, */
  readonly isClean: boolean
  /** and whether the last was. */
  readonly endsClean: boolean
  readonly state: FunctionState
  /** From the answer to its last call that ran until it was seen disabled; undefined if it was not, or no call ran. */
  readonly disabledAfterMs: number | undefined
}

/** What became of an offender. @param disabledAtMs when it was seen disabled, in ms of the epoch */
export function offenderFigures(
  title: string,
  calls: readonly Call[],
  state: FunctionState,
  disabledAtMs: number | undefined,
): OffenderFigures {
  const ran = calls.filter((call) => endOf(call) !== 'refused').toSorted((a, b) => a.endedMs - b.endedMs)
  const last = ran.at(-1)
  const isCleanEnd = ({ code = '' }: Call): boolean => CLEAN_ENDS.has(code)
  return {
    title,
    ends: endLine(calls),
    isClean: ran.every(isCleanEnd),
    endsClean: last !== undefined && isCleanEnd(last),
    state,
    disabledAfterMs: disabledAtMs !== undefined && last !== undefined ? disabledAtMs - last.endedMs : undefined,
  }
}

export interface FateOptions {
  readonly claim: string
  readonly harmed: number
  /** Whether all that was harmed was harmed by this one. */
  readonly isAlone: boolean
  readonly isQuick: boolean
}

/**
 * Who harms hosts ends disabled; who does not is answered for what it did, each time. In a short run there may be too few calls
 * for that.
 */
export function fateVerdict(
  { title, ends, isClean, endsClean, state }: OffenderFigures,
  { claim, harmed, isAlone, isQuick }: FateOptions,
): Verdict {
  const isHarmless = isAlone ? isClean && harmed === 0 : endsClean
  const what = isAlone ? `${claim}: it` : `${claim}: ${title}`
  const harm = isAlone ? `, ${harmed} hosts harmed` : ''
  return {
    kind: isQuick ? 'aim' : 'demand',
    claim: `${what} is disabled, or harms no host and is ended at its limits`,
    isMet: state === 'disabled' || isHarmless,
    detail: `${state}${harm}, answers ${ends}`,
  }
}
