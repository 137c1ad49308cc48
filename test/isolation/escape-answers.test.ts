/**
 * Escapes by answers, by what calls leave for each other, by what time tells, and by source that would be more than a function.
 */
import t from 'tap'
import { ESCAPE_ANSWER_CASES } from './cases/escape-answers.ts'
import { ESCAPE_STATE_CASES } from './cases/escape-state.ts'
import { runCases } from './harness/run-cases.ts'

t.test('answers, state, time and source', (t) => runCases(t, [...ESCAPE_ANSWER_CASES, ...ESCAPE_STATE_CASES]))
