/** Escapes: code finds nothing but its own world. */
import t from 'tap'
import { ESCAPE_REACH_CASES } from './cases/escape-reach.ts'
import { ESCAPE_TAMPERING_CASES } from './cases/escape-tampering.ts'
import { ESCAPE_VALUE_CASES } from './cases/escape-values.ts'
import { runCases } from './harness/run-cases.ts'

t.test('escapes', (t) => runCases(t, [...ESCAPE_REACH_CASES, ...ESCAPE_TAMPERING_CASES, ...ESCAPE_VALUE_CASES]))
