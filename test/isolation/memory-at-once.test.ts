/** Memory that one step takes: no more beyond a limit than SECURITY.md says, and nobody else loses a call. */
import t from 'tap'
import { AT_ONCE_CASES } from './cases/memory-at-once.ts'
import { runCases } from './harness/run-cases.ts'

t.test('much memory at once', (t) => runCases(t, AT_ONCE_CASES, { flags: ['--standby-hosts', '1'] }))
