/** What was started ends, with everything that it started, whichever of its processes is told to end or is killed. */
import { readdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { commandOf } from '../support/process-tree.ts'
import { temporaryFolder } from '../support/server.ts'
import { environmentIn, noProc, startBy, Started, untilThere } from '../support/started.ts'

t.jobs = 2
// Many starts, on a machine that may have much else to do.
t.setTimeout(300_000)

const NPM_START = { command: ['npm', 'start'] }

function test(title: string, body: (t: Test) => Promise<void>): void {
  t.test(title, { buffered: true, skip: noProc }, body)
}

/** In the short form stopping-npx.test.ts has them, in a third of the time, and what comes too early or twice is below. */
const SIGNALS = [
  ['npm', 'SIGKILL'],
  ['npm', 'SIGINT'],
  ['npm', 'SIGHUP'],
  ['npm', 'SIGTERM'],
  ['server', 'SIGTERM'],
  ['server', 'SIGINT'],
  ['server', 'SIGHUP'],
] as const

for (const [role, signal] of IS_WHOLE ? SIGNALS : []) {
  test(`npm start: ${signal} to ${role}`, async (t) => {
    const { started, server } = await startBy(t, NPM_START)
    server.signal(role, signal)
    await started.untilGone()
    await t.resolves(server.assertFree(), 'ports and data are free')
  })
}

test('npm start: npm is killed before the server has looked who started it', async (t) => {
  const started = new Started(t, NPM_START.command, { env: environmentIn(temporaryFolder(t)) })
  const isThere = () => started.look().some(({ pid }) => /^node .*serve\/start\.ts/.test(commandOf(pid)))
  await untilThere('the server process', () => (isThere() ? true : undefined))
  started.root.kill('SIGKILL')
  await started.untilGone()
  t.pass('it ended')
})

test('npm start: a second signal ends it at once', async (t) => {
  const { started, server } = await startBy(t, NPM_START)
  await server.deploySlow('slow', 20_000)
  const call = await server.startCall('slow')
  // npm passes on each that it gets, and what comes close upon the first counts as the same.
  const sending = setInterval(() => started.root.kill('SIGINT'), 50)
  t.teardown(() => clearInterval(sending))
  t.equal(await call.answer, 'cut')
  clearInterval(sending)
  await started.untilGone()
  await t.resolves(server.assertFree(), 'ports and data are free')
})

async function startDev(t: Test) {
  const folder = temporaryFolder(t)
  const { CARPOOL_DATA: _, ...env } = environmentIn(folder)
  const started = new Started(t, ['npx', 'carpool', 'dev', 'examples/calc'], { env: { ...env, TMPDIR: folder } })
  const server = await started.serverIn(folder)
  await untilThere('the function', () => (started.output.includes('Serving') ? true : undefined))
  const dataFolders = () => readdirSync(folder).filter((name) => name.startsWith('carpool-dev-'))
  t.equal(dataFolders().length, 1)
  return { started, server, dataFolders }
}

test('npx carpool dev: npm is killed, and the temporary folder goes as well', async (t) => {
  const { started, server, dataFolders } = await startDev(t)
  server.signal('npm', 'SIGKILL')
  await started.untilGone()
  t.strictSame(dataFolders(), [])
})

test('npx carpool dev: a second signal ends it at once, and the temporary folder goes as well', async (t) => {
  const { started, server, dataFolders } = await startDev(t)
  await server.deploySlow('slow', 20_000)
  const call = await server.startCall('slow')
  // Two of one kind, close upon each other, may come as one.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) server.signal('server', signal)
  t.equal(await call.answer, 'cut')
  await started.untilGone()
  t.strictSame(dataFolders(), [])
})

const DEMOS = [
  { whom: 'npm', pattern: /^npm run demo/, signal: 'SIGTERM', running: 'host/src/process.ts' },
  { whom: 'the bench', pattern: /^node .*seed\/demo\.ts/, signal: 'SIGHUP', running: 'baseline/plain-node.js' },
  { whom: 'the bench', pattern: /^node .*seed\/demo\.ts/, signal: 'SIGKILL', running: 'baseline/worker.js' },
] as const

// What it runs later comes after half a minute of CPU.
for (const { whom, pattern, signal, running } of IS_WHOLE ? DEMOS : DEMOS.slice(0, 1)) {
  test(`npm run demo: ${signal} to ${whom} while ${running} runs`, async (t) => {
    const folder = temporaryFolder(t)
    const env = { ...environmentIn(folder), TMPDIR: folder }
    const started = new Started(t, ['npm', 'run', 'demo', '--', '--calls', '1', '--rounds', '1'], { env })
    const isRunning = () => started.look().some(({ pid }) => commandOf(pid).includes(running))
    await untilThere(running, () => (isRunning() ? true : undefined))
    const target = started.look().find(({ pid }) => pattern.test(commandOf(pid)))
    t.ok(target !== undefined && process.kill(target.pid, signal))
    await started.untilGone()
    const left = readdirSync(folder).filter((name) => name.startsWith('carpool-bench-'))
    if (signal !== 'SIGKILL') t.strictSame(left, [], 'its folder went with it')
  })
}
