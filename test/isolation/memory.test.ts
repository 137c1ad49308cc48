/** Memory: whoever takes more than its limit is ended, and nobody else is held up. */
import t from 'tap'
import { MEMORY_CASES } from './cases/memory.ts'
import { runCases } from './harness/run-cases.ts'

t.test('memory', (t) => runCases(t, MEMORY_CASES))
