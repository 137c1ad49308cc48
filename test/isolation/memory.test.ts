/** Memory: whoever takes more than its limit is ended, and nobody else is held up; from outside, of many, and no limits. */
import t from 'tap'
import { MEMORY_CASES, MEMORY_LIMIT_CASES } from './cases/memory.ts'
import { FORM } from './harness/form.ts'
import { runLists } from './harness/run-cases.ts'

t.setTimeout(FORM.fileMs)

t.test('memory', (t) => runLists(t, { 'its own': MEMORY_CASES, 'from outside and of many': MEMORY_LIMIT_CASES }))
