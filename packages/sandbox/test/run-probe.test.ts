import t from 'tap'
import { createCage } from '../src/cage.ts'
import { findTools } from '../src/find-tools.ts'
import { openCanaries } from '../src/probe/canaries.ts'
import { CANARY_SIGNAL } from '../src/probe/attempts.ts'
import { runProbe, type ProbeResult } from '../src/probe/run-probe.ts'
import { planOf } from './support/plan.ts'

const { canaries, close } = await openCanaries()
t.teardown(close)

async function probe(nodePath: string, nodeArguments: readonly string[] = []): Promise<ProbeResult> {
  const cage = createCage(planOf(['rlimits'], { tools: findTools(), filter: undefined }))
  return await runProbe(cage, { nodePath, nodeArguments }, { canaries, attempts: [], tellsFacts: false })
}

t.test('a probe that does not run says why', async (t) => {
  t.match(await probe('/nothing/here'), { complaint: /\/nothing\/here: / })
  t.match(await probe('/bin/sh', ['-c', 'echo no library >&2; exit 127']), { complaint: 'no library' })
  t.match(await probe('/bin/sh', ['-c', 'exit 3']), { complaint: 'It ended with exit code 3.' })
  t.match(await probe('/bin/sh', ['-c', 'kill -SEGV $$']), { complaint: 'It ended with SIGSEGV.' })
  t.equal(process.listenerCount(CANARY_SIGNAL), 0)
})

t.test('one that hangs is given up, also if others hold what it had open', async (t) => {
  const cage = createCage(planOf(['rlimits'], { tools: findTools(), filter: undefined }))
  const program = { nodePath: '/bin/sh', nodeArguments: ['-c', 'sleep 600 & wait'] }
  const result = await runProbe(cage, program, { canaries, attempts: [], tellsFacts: false }, 200)
  t.strictSame(result, { complaint: 'It did not answer within 0.2 s.', isLate: true })
  t.equal(process.listenerCount(CANARY_SIGNAL), 0)
})

t.test('what one complains of is one line without what a terminal obeys', async (t) => {
  const { complaint = '' } = (await probe('/bin/sh', ['-c', "printf 'a\\n\\033[2Jb\\n' >&2; exit 1"])) as { complaint?: string }
  t.equal(complaint, 'a b')
})

t.test('one that answers is believed that it signalled only if the signal came', async (t) => {
  const answering = (line: string): readonly string[] => [
    '-c',
    `read order <&3; ${line}; echo '{"results":{"signal the server":"done"}}' >&3; read more <&3`,
  ]
  t.match(await probe('/bin/sh', answering(':')), { answer: { results: { 'signal the server': 'ESRCH' } } })
  t.match(await probe('/bin/sh', answering(`kill -URG ${process.pid}`)), { answer: { results: { 'signal the server': 'done' } } })
})
