/** CPU: whoever burns more than its limit is ended, and nobody else is held up. */
import t from 'tap'
import { CPU_CASES } from './cases/cpu.ts'
import { runCases } from './harness/run-cases.ts'

t.test('CPU', (t) => runCases(t, CPU_CASES))
