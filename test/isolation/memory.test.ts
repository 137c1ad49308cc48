/** Memory: whoever takes more than its limit is ended, and nobody else is held up; from outside, of many, and no limits. */
import t from 'tap'
import { MEMORY_CASES, MEMORY_LIMIT_CASES } from './cases/memory.ts'
import { runLists } from './harness/run-cases.ts'

// Many cases, on a machine that may have much else to do.
t.setTimeout(600_000)

t.test('memory', (t) => runLists(t, { 'its own': MEMORY_CASES, 'from outside and of many': MEMORY_LIMIT_CASES }))
