import { ERRORS, OUTCOMES, START_KINDS, type ErrorCode, type InvocationRecord, type Trigger } from '@carpool/core'

type RecordOutcome = InvocationRecord['outcome']

/** The words of a record, by numbers that are those of this build alone: a journal has the words with them, and rows have nothing else. */
const TRIGGERS = Object.keys({ http: true, cli: true } satisfies Record<Trigger, true>)
const RECORD_OUTCOMES = [...Object.keys(OUTCOMES), 'refused']
/** The first one stands for no error. */
const RECORD_ERRORS = ['', ...Object.keys(ERRORS)]

const outcomeCodes = codesOf(RECORD_OUTCOMES)
const startCodes = codesOf(START_KINDS)
const triggerCodes = codesOf(TRIGGERS)
const errorCodes = codesOf(RECORD_ERRORS)

export interface RecordWords {
  readonly outcome: string
  readonly start: string
  readonly trigger: string
  readonly error: string | null
}

/** One number for all words of a record; NaN if one of them is unknown. */
export function wordsCode(outcome: RecordOutcome, start: string, trigger: string, error: ErrorCode | undefined): number {
  const errorCode = error === undefined ? 0 : code(errorCodes, error)
  const rest = errorCode * TRIGGERS.length + code(triggerCodes, trigger)
  return (rest * START_KINDS.length + code(startCodes, start)) * RECORD_OUTCOMES.length + code(outcomeCodes, outcome)
}

export function wordsOf(wordsCode: number): RecordWords {
  let rest = wordsCode
  const take = (words: readonly string[]): string => {
    const word = words[rest % words.length] ?? ''
    rest = Math.floor(rest / words.length)
    return word
  }
  const outcome = take(RECORD_OUTCOMES)
  const start = take(START_KINDS)
  const trigger = take(TRIGGERS)
  const error = take(RECORD_ERRORS)
  return { outcome, start, trigger, error: error === '' ? null : error }
}

function codesOf(words: readonly string[]): ReadonlyMap<string, number> {
  return new Map(words.map((word, index) => [word, index]))
}

function code(codes: ReadonlyMap<string, number>, word: string): number {
  return codes.get(word) ?? Number.NaN
}
