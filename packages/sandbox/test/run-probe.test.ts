import t from 'tap'
import { processSandbox } from '../src/spawn.ts'
import { findTools } from '../src/tools.ts'
import { CANARY_SIGNAL, openCanaries, runProbe, type ProbeResult } from '../src/run-probe.ts'
import { planOf } from './support/plan.ts'

const { canaries, close } = await openCanaries()
t.teardown(close)

async function probe(nodePath: string, nodeArguments: readonly string[] = []): Promise<ProbeResult> {
  const sandbox = processSandbox(planOf(['rlimits'], { tools: findTools(), filter: undefined }))
  return await runProbe(sandbox, { nodePath, nodeArguments }, { canaries, attempts: [], wantsFacts: false })
}

t.test('a probe that does not run says why', async (t) => {
  t.match(await probe('/nothing/here'), { error: /\/nothing\/here: / })
  t.match(await probe('/bin/sh', ['-c', 'echo no library >&2; exit 127']), { error: 'no library' })
  t.match(await probe('/bin/sh', ['-c', 'exit 3']), { error: 'It ended with exit code 3.' })
  t.match(await probe('/bin/sh', ['-c', 'kill -SEGV $$']), { error: 'It ended with SIGSEGV.' })
  t.equal(process.listenerCount(CANARY_SIGNAL), 0)
})

t.test('one that hangs is given up, also if others hold what it had open', async (t) => {
  const sandbox = processSandbox(planOf(['rlimits'], { tools: findTools(), filter: undefined }))
  const program = { nodePath: '/bin/sh', nodeArguments: ['-c', 'sleep 600 & wait'] }
  const result = await runProbe(sandbox, program, { canaries, attempts: [], wantsFacts: false }, 200)
  t.strictSame(result, { error: 'It did not answer within 0.2 s.', isLate: true })
  t.equal(process.listenerCount(CANARY_SIGNAL), 0)
})

t.test('its error is one line without what a terminal obeys', async (t) => {
  const { error = '' } = (await probe('/bin/sh', ['-c', "printf 'a\\n\\033[2Jb\\n' >&2; exit 1"])) as { error?: string }
  t.equal(error, 'a b')
})

t.test('one that answers is believed that it signalled only if the signal came', async (t) => {
  const answering = (before: string, after = ':'): readonly string[] => [
    '-c',
    `read order <&3; ${before}; echo '{"results":{"signal the server":"done"}}' >&3; ${after}; read more <&3`,
  ]
  t.match(await probe('/bin/sh', answering(':')), { answer: { results: { 'signal the server': 'ESRCH' } } })
  t.equal(process.listenerCount(CANARY_SIGNAL), 0)
  t.match(await probe('/bin/sh', answering(`kill -URG ${process.pid}`)), { answer: { results: { 'signal the server': 'done' } } })
  // As if another thread took it, that had no core until then.
  const late = `sleep 0.1; kill -URG ${process.pid}`
  t.match(await probe('/bin/sh', answering(':', late)), { answer: { results: { 'signal the server': 'done' } } })
})
