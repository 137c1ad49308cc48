/** Floods: calls of the host that a function makes without a pause harm nobody but itself. */
import t from 'tap'
import { FLOOD_CASES } from './cases/flood.ts'
import { runCases } from './harness/run-cases.ts'

t.test('floods', (t) => runCases(t, FLOOD_CASES))
