/**
 * What V8 never gets out of, and memory that it can neither give nor refuse: the host is given up, and nobody else loses a
 * call. And memory that one step takes: no more beyond a limit than SECURITY.md says.
 */
import t from 'tap'
import { AT_ONCE_CASES } from './cases/memory-at-once.ts'
import { CPU_POISON_CASES, MEMORY_POISON_CASES } from './cases/poison.ts'
import { FORM } from './harness/form.ts'
import { runLists } from './harness/run-cases.ts'

t.setTimeout(FORM.fileMs)

t.test('what the host may not outlive', (t) =>
  runLists(
    t,
    { 'much memory at once': AT_ONCE_CASES, 'what gives the host up': [...CPU_POISON_CASES, ...MEMORY_POISON_CASES] },
    { flags: ['--standby-hosts', '1'] },
  ),
)
