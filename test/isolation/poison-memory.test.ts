/** Memory that V8 can neither give nor refuse: the host is given up, and at last the function is disabled. */
import t from 'tap'
import { MEMORY_POISON_CASES } from './cases/poison.ts'
import { runCases } from './harness/run-cases.ts'

t.test('memory that V8 cannot give', (t) => runCases(t, MEMORY_POISON_CASES, { flags: ['--standby-hosts', '1'] }))
