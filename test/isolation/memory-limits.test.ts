/** Memory that comes from outside, of many at once, and limits that are none. */
import t from 'tap'
import { MEMORY_LIMIT_CASES } from './cases/memory.ts'
import { runCases } from './harness/run-cases.ts'

t.test('memory, from outside and of many', (t) => runCases(t, MEMORY_LIMIT_CASES))
