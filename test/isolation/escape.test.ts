/**
 * Escapes: code finds nothing but its own world; nor by answers, by what calls leave for each other, by what time tells, and by
 * source that would be more than a function.
 */
import t from 'tap'
import { ESCAPE_ANSWER_CASES } from './cases/escape-answers.ts'
import { ESCAPE_REACH_CASES } from './cases/escape-reach.ts'
import { ESCAPE_STATE_CASES } from './cases/escape-state.ts'
import { ESCAPE_TAMPERING_CASES } from './cases/escape-tampering.ts'
import { ESCAPE_VALUE_CASES } from './cases/escape-values.ts'
import { FORM } from './harness/form.ts'
import { runLists } from './harness/run-cases.ts'

t.setTimeout(FORM.fileMs)

t.test('escapes', (t) =>
  runLists(t, {
    'reach, tampering and values': [...ESCAPE_REACH_CASES, ...ESCAPE_TAMPERING_CASES, ...ESCAPE_VALUE_CASES],
    'answers, state, time and source': [...ESCAPE_ANSWER_CASES, ...ESCAPE_STATE_CASES],
  }),
)
