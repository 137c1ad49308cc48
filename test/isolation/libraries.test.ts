/** Libraries of the runtime, their native functions, and Node.js' modules: they end at limits, and give nothing away. */
import t from 'tap'
import { LIBRARY_CPU_CASES } from './cases/libraries-cpu.ts'
import { LIBRARY_ESCAPE_CASES } from './cases/libraries-escape.ts'
import { LIBRARY_MEMORY_CASES } from './cases/libraries-memory.ts'
import { FORM } from './harness/form.ts'
import { runLists } from './harness/run-cases.ts'

// Many deploys, on a machine that may have much else to do.
t.setTimeout(FORM.fileMs)

t.test('libraries', (t) => runLists(t, { CPU: LIBRARY_CPU_CASES, memory: LIBRARY_MEMORY_CASES, escapes: LIBRARY_ESCAPE_CASES }))
