/** What V8 never gets out of: the host is given up, another takes its place, and nobody else loses a call. */
import t from 'tap'
import { CPU_POISON_CASES } from './cases/poison.ts'
import { runCases } from './harness/run-cases.ts'

t.test('what never ends', (t) => runCases(t, CPU_POISON_CASES, { flags: ['--standby-hosts', '1'] }))
