/** What calls leave for each other, what time tells, and source that would be more than a function. */
import t from 'tap'
import { ESCAPE_STATE_CASES } from './cases/escape-state.ts'
import { runCases } from './harness/run-cases.ts'

t.test('state, time and source', (t) => runCases(t, ESCAPE_STATE_CASES))
