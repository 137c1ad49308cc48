/** CPU: built-ins that take long, and code of the function that the runtime would call. */
import t from 'tap'
import { CPU_BUILTIN_CASES } from './cases/cpu.ts'
import { runCases } from './harness/run-cases.ts'

t.test('CPU, built-ins and hooks', (t) => runCases(t, CPU_BUILTIN_CASES))
