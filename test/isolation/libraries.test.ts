/** Libraries of the runtime, their native functions, and Node.js' modules: they end at limits, and give nothing away. */
import t from 'tap'
import { LIBRARY_CPU_CASES } from './cases/libraries-cpu.ts'
import { LIBRARY_ESCAPE_CASES } from './cases/libraries-escape.ts'
import { LIBRARY_MEMORY_CASES } from './cases/libraries-memory.ts'
import { runCases } from './harness/run-cases.ts'

t.test('libraries: CPU', (t) => runCases(t, LIBRARY_CPU_CASES))
t.test('libraries: memory', (t) => runCases(t, LIBRARY_MEMORY_CASES))
t.test('libraries: escapes', (t) => runCases(t, LIBRARY_ESCAPE_CASES))
