/** Escapes: what a function gives for an answer cannot harm who takes it. */
import t from 'tap'
import { ESCAPE_ANSWER_CASES } from './cases/escape-answers.ts'
import { runCases } from './harness/run-cases.ts'

t.test('answers', (t) => runCases(t, ESCAPE_ANSWER_CASES))
