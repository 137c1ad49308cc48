/**
 * CPU: whoever burns more than its limit is ended, also in built-ins and in code that the runtime would call, and nobody else
 * is held up.
 */
import t from 'tap'
import { CPU_BUILTIN_CASES, CPU_CASES } from './cases/cpu.ts'
import { runCases } from './harness/run-cases.ts'

t.test('CPU', (t) => runCases(t, [...CPU_CASES, ...CPU_BUILTIN_CASES]))
