/**
 * Group C7 of the list of attacks, third part: servers that are ended, killed, out of disk or descriptors, or find their data
 * damaged.
 */
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { untilEnd, startCarpool } from '../support/command.ts'
import { readLedger } from '../support/ledger.ts'
import { startLoad } from '../support/load.ts'
import { startServer, temporaryFolder, type TestServer } from '../support/server.ts'
import { call, type Answer } from './harness/call.ts'
import { deployScript } from './harness/control.ts'
import { sampleProcess } from './harness/process-sample.ts'
import { filesIn } from './support-b/folder.ts'
import { comes, eventually } from './support-b/patience.ts'
import { connectRaw } from './support-b/raw-client.ts'
import { runScenarios, type Scenario } from './support-b/scenario.ts'
import { limitOf, limitProcess, noLimits, pidOf } from './support-b/server-process.ts'

const FINE = `(function () { return { default: { fetch: () => new Response('fine') } } })`
const OTHER = `(function () { return { default: { fetch: () => new Response('other') } } })`
const WAITS = `(function () { return { default: { fetch: () => new Promise(() => {}) } } })`

function isAlive(pid: number): boolean {
  return sampleProcess(pid) !== undefined
}

/** No id stands twice in the ledger, and each of these stands there. */
function checkLedger(t: Test, dataDir: string, answered: readonly string[]): void {
  const ids = readLedger(dataDir).map(({ id }) => String(id))
  const recorded = new Set(ids)
  t.equal(recorded.size, ids.length, `${ids.length} records, none twice`)
  t.strictSame(
    answered.filter((id) => !recorded.has(id)),
    [],
    `${answered.length} answers, each has its record`,
  )
}

const ENDS: Scenario[] = [
  {
    id: 'L09',
    group: 'lifecycle',
    title: 'a server that is told to end while calls wait that never will',
    verdict: 'E',
    billed: 'full',
    run: async (t) => {
      const server = await startServer(t, ['--grace-ms', '300'])
      await deployScript(server, 'waits', { code: WAITS })
      const calls = Array.from({ length: 5 }, () => call(`${server.url}/waits/`))
      await eventually(t, 'five calls wait', async () => (await server.status()).inFlight === 5)
      const { pid } = (await server.info()).hosts[0] ?? { pid: 0 }
      const { code, stderr } = await server.stop('SIGTERM')
      t.equal(code, 0)
      t.notMatch(stderr, /\bat .*\.ts:\d+/, 'no stack')
      t.ok(!isAlive(pid), 'the host is gone')
      const answers = await Promise.all(calls)
      t.equal(answers.filter(({ status }) => status === 200).length, 0)
      const rows = readLedger(server.dataDir)
      t.equal(rows.length, 5, 'each has one record')
      t.equal(new Set(rows.map(({ id }) => id)).size, 5)
      return [...new Set(answers.map(({ status, code: one }) => `${status} ${one}`))].join(', ')
    },
  },
  {
    id: 'L10',
    group: 'lifecycle',
    title: 'a server that is killed under load, and started again',
    verdict: 'E',
    billed: 'full',
    run: async (t) => {
      const first = await startServer(t, ['--min-hosts', '2'])
      await deployScript(first, 'fine', { code: FINE })
      const { hosts } = await first.info()
      const load = startLoad(t, `${first.url}/fine/`, 8)
      await eventually(t, 'two hundred calls are answered', () => load.answers.length > 200)
      await first.stop('SIGKILL')
      const answers = await load.stop()
      await eventually(t, 'its hosts end by themselves', () => hosts.every(({ pid }) => !isAlive(pid)))
      const second = await startServer(t, [], first.dataDir)
      const next = await call(`${second.url}/fine/`)
      t.equal(next.text, 'fine', 'the function is there again')
      const served = answers.filter(({ status }) => status === 200).length
      await second.recorded()
      const rows = readLedger(first.dataDir).filter(({ outcome }) => outcome === 'ok')
      t.ok(rows.length >= served + 1, `${served} were answered, ${rows.length} are recorded`)
      checkLedger(t, first.dataDir, [next.id])
      return '200'
    },
  },
]

/** Calls until the answer has this code. @returns all answers */
async function callUntil(t: Test, server: TestServer, code: string): Promise<Answer[]> {
  const answers: Answer[] = []
  await eventually(t, `a call is answered ${code || 'by the function'}`, async () => {
    const answer = await call(`${server.url}/fine/`)
    answers.push(answer)
    return answer.code === code
  })
  return answers
}

const skip = noLimits()
const SHORTAGES: Scenario[] = [
  {
    id: 'L11a',
    group: 'lifecycle',
    title: 'a disk that takes nothing more, and then does again',
    verdict: 'R',
    billed: 'full',
    ...(skip !== undefined && { skip }),
    run: async (t) => {
      const server = await startServer(t)
      await deployScript(server, 'fine', { code: FINE })
      const before = await call(`${server.url}/fine/`)
      const pid = pidOf(server)
      const limit = limitOf(pid, 'fsize')
      limitProcess(pid, 'fsize', 0)
      const during = await callUntil(t, server, 'ledger-unavailable')
      t.ok(
        during.every(({ status, code }) => status === 200 || code === 'ledger-unavailable'),
        'calls are answered as long as they can be recorded, and then refused',
      )
      const deployed = await deployScript(server, 'fine', { code: OTHER })
      t.match(deployed, { status: 500, problem: { code: 'data-unusable' } }, 'a deploy is refused')
      t.notMatch(JSON.stringify(deployed), server.dataDir)
      limitProcess(pid, 'fsize', limit)
      const after = await callUntil(t, server, '')
      t.equal(after.at(-1)?.text, 'fine', 'what was live is live')
      t.equal((await deployScript(server, 'fine', { code: OTHER })).status, 201)
      t.equal((await server.stop()).code, 0)
      const called = [before, ...during, ...after]
      checkLedger(
        t,
        server.dataDir,
        called.map(({ id }) => id),
      )
      const refused = readLedger(server.dataDir).filter(({ outcome }) => outcome === 'refused')
      t.ok(refused.length > 0, 'also those that were refused because they could not be recorded')
      t.ok(refused.every(({ error, status }) => error === 'ledger-unavailable' && Number(status) === 503))
      return '200, 503 ledger-unavailable'
    },
  },
  {
    id: 'L11b',
    group: 'lifecycle',
    title: 'a server that may open no more descriptors',
    verdict: 'R',
    billed: 'full',
    ...(skip !== undefined && { skip }),
    run: async (t) => {
      const server = await startServer(t)
      await deployScript(server, 'fine', { code: FINE })
      const kept = await connectRaw(t, server.url)
      const pid = pidOf(server)
      const limit = limitOf(pid, 'nofile')
      limitProcess(pid, 'nofile', (sampleProcess(pid)?.descriptors ?? 0) + 5)
      const more = await Promise.all(Array.from({ length: 40 }, () => connectRaw(t, server.url)))
      kept.send('GET /fine/ HTTP/1.1\r\nhost: a\r\n\r\n')
      await comes(t, 'who is connected is answered', kept.until(/fine$/))
      for (const { socket } of more) socket.destroy()
      limitProcess(pid, 'nofile', limit)
      await callUntil(t, server, '')
      t.equal((await server.stop()).code, 0)
      return '200'
    },
  },
  {
    id: 'L11c',
    group: 'lifecycle',
    title: 'no memory, and no threads',
    verdict: 'R',
    billed: 'none',
    skip: 'The limits that the system has for these do not hold for root; the sandbox sets them for hosts.',
    run: async () => '',
  },
]

function bundleWith(dataDir: string, text: string): string {
  const file = filesIn(dataDir).find((one) => one.endsWith('.js') && readFileSync(join(dataDir, one), 'utf8').includes(text))
  if (file === undefined) throw new Error('The bundle is not found.')
  return join(dataDir, file)
}

const DAMAGED: Scenario[] = [
  {
    id: 'L12a',
    group: 'lifecycle',
    title: 'bundles on the disk that are cut short, empty, and changed',
    verdict: 'E',
    billed: 'none',
    run: async (t) => {
      const saying = (text: string): string => FINE.replace('fine', text)
      const names = ['cut', 'empty', 'changed', 'sound']
      const first = await startServer(t)
      await Promise.all(names.map((name) => deployScript(first, name, { code: saying(`said by ${name}`) })))
      t.equal((await first.stop()).code, 0)
      const { dataDir } = first
      truncateSync(bundleWith(dataDir, 'said by cut'), 10)
      truncateSync(bundleWith(dataDir, 'said by empty'), 0)
      const changed = bundleWith(dataDir, 'said by changed')
      writeFileSync(changed, readFileSync(changed, 'utf8').replace('said by', 'evil by'))

      const second = await startServer(t, [], dataDir)
      for (const name of ['cut', 'empty', 'changed']) {
        const answer = await call(`${second.url}/${name}/`)
        t.match(answer, { status: 500, code: 'data-unusable' }, name)
        t.notOk(answer.text.includes(dataDir), 'without a path')
      }
      t.equal((await call(`${second.url}/sound/`)).text, 'said by sound', 'the other function serves')
      t.equal((await deployScript(second, 'cut', { code: saying('said by cut') })).status, 201)
      t.equal((await call(`${second.url}/cut/`)).text, 'said by cut', 'a deploy mends it')
      return '500 data-unusable'
    },
  },
  ...['registry.sqlite', 'ledger.sqlite'].map(
    (file, index): Scenario => ({
      id: `L12${'bc'[index]}`,
      group: 'lifecycle',
      title: `a ${file} that is none`,
      verdict: 'R',
      billed: 'none',
      run: async (t) => {
        const dataDir = temporaryFolder(t)
        writeFileSync(join(dataDir, file), 'garbage'.repeat(1000))
        const env = { CARPOOL_STATE_DIR: temporaryFolder(t) }
        const { code, stderr } = await untilEnd(
          startCarpool(['serve', '--port', '0', '--admin-port', '0', '--data', dataDir, '--json'], env),
        )
        t.not(code, 0, 'it does not start')
        t.match(stderr, /data|ledger|registry/i, `it says why: ${stderr.slice(0, 300)}`)
        t.notMatch(stderr, /\n\s+at .*:\d+:\d+/, 'without a stack')
        t.match(readFileSync(join(dataDir, file), 'utf8'), /^garbage/, 'what is there stays as it is')
        return 'does not start'
      },
    }),
  ),
]

t.test('lifecycle: ends', (t) => runScenarios(t, ENDS))
t.test('lifecycle: shortages', (t) => runScenarios(t, SHORTAGES))
t.test('lifecycle: damage', (t) => runScenarios(t, DAMAGED))
