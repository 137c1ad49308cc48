/**
 * What V8 never gets out of, and memory that it can neither give nor refuse: the host is given up, and nobody else loses a
 * call.
 */
import t from 'tap'
import { CPU_POISON_CASES, MEMORY_POISON_CASES } from './cases/poison.ts'
import { runCases } from './harness/run-cases.ts'

t.test('what gives the host up', (t) =>
  runCases(t, [...CPU_POISON_CASES, ...MEMORY_POISON_CASES], { flags: ['--standby-hosts', '1'] }),
)
