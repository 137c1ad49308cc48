/** What the end of a script or a terminal does to servers that were started there, and which are meant to outlive it. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { temporaryFolder } from '../support/server.ts'
import { environmentIn, isInPath, noProc, projectIn, Started, type Role, type Serving } from '../support/started.ts'

t.jobs = 2
// Many starts, on a machine that may have much else to do.
t.setTimeout(300_000)

const noShell = ['bash', 'nohup', 'setsid'].some((program) => !isInPath(program)) && 'bash, nohup or setsid is not there'
const noTerminal =
  (process.platform !== 'linux' || !isInPath('script')) &&
  'there is no script, which makes a terminal; the package bsdutils or util-linux has it'

function test(title: string, skip: string | false, body: (t: Test) => Promise<void>): void {
  t.test(title, { buffered: true, skip: noProc || noShell || skip }, body)
}

/** A line for bash that starts a server with things of its own. */
function lineIn(folder: string, command: string): string {
  const { CARPOOL_DATA, CARPOOL_STATE_DIR } = environmentIn(folder)
  return `CARPOOL_DATA='${CARPOOL_DATA}' CARPOOL_STATE_DIR='${CARPOOL_STATE_DIR}' ${command}`
}

/** A terminal with a command in it: what is written to the root's stdin is typed there. */
function openTerminal(t: Test, command: string, options: ConstructorParameters<typeof Started>[2]): Started {
  return new Started(t, ['script', '-qfc', command, '/dev/null'], options)
}

async function isReady({ address }: Serving): Promise<boolean> {
  // The second request comes after whatever the server was told before the first.
  for (let request = 0; request < 2; request++) {
    const response = await fetch(`${address.adminUrl}/readyz`).catch(() => undefined)
    if (response?.ok !== true) return false
  }
  return true
}

test('a script is killed: its server ends, those under nohup and setsid go on', false, async (t) => {
  const folder = temporaryFolder(t)
  const [plain, nohup, setsid] = ['plain', 'nohup', 'setsid'].map((name) => join(folder, name)) as [string, string, string]
  const script = [
    `${lineIn(plain, 'npx carpool serve')} &`,
    `${lineIn(nohup, `nohup npx carpool serve`)} &`,
    `${lineIn(setsid, `setsid npx carpool serve`)} &`,
    'wait',
  ].join('\n')
  const started = new Started(t, ['bash', '-c', script], { cwd: projectIn(folder), env: environmentIn(folder) })
  const plainServer = await started.serverIn(plain)
  const nohupServer = await started.serverIn(nohup)
  const setsidServer = await started.serverIn(setsid)
  const nohupTree = started.below(nohupServer)
  const setsidTree = started.below(setsidServer)

  started.root.kill('SIGKILL')
  await started.untilGone([...nohupTree, ...setsidTree])
  await t.resolves(plainServer.assertFree(), 'ports and data are free')
  t.match(started.output, /carpool: What started this process has ended: bash \(\d+\)\./)
  t.ok(await isReady(nohupServer), 'nohup')
  t.ok(await isReady(setsidServer), 'setsid')

  nohupServer.signal('npm', 'SIGTERM')
  await started.untilGone(setsidTree)
  await t.resolves(nohupServer.assertFree(), 'ports and data are free')

  setsidServer.signal('npm', 'SIGHUP')
  await started.untilGone()
  await t.resolves(setsidServer.assertFree(), 'ports and data are free')
})

test('a terminal is closed: its server ends in order, that under nohup goes on without its npm', noTerminal, async (t) => {
  const folder = temporaryFolder(t)
  const [plain, nohup] = ['plain', 'nohup'].map((name) => join(folder, name)) as [string, string]
  const options = { cwd: projectIn(folder), env: { ...environmentIn(folder), TERM: 'dumb' } }
  const terminal = openTerminal(t, 'exec bash --norc --noprofile -i', options)
  terminal.root.stdin?.write(`${lineIn(nohup, 'nohup npx carpool serve')} &\n`)
  const nohupServer = await terminal.serverIn(nohup)
  terminal.root.stdin?.write(`${lineIn(plain, 'npx carpool serve')}\n`)
  const plainServer = await terminal.serverIn(plain)
  await plainServer.deploySlow('slow', 1_000)
  const call = await plainServer.startCall('slow')
  const nohupTree = terminal.below(nohupServer)
  // Node.js forgets that nohup had SIGHUP ignored, and npm does nothing about it.
  const hungUp = ['npm', 'shell'].map((role) => nohupServer.roles.get(role as Role)?.pid)

  terminal.root.kill('SIGKILL')
  t.equal(await call.answer, 'done', 'what is said to a closed terminal does not end it before its time')
  await terminal.untilGone(nohupTree.filter(({ pid }) => !hungUp.includes(pid)))
  await t.resolves(plainServer.assertFree(), 'ports and data are free')
  t.notOk(plainServer.isAnnounced(), 'it ended in order')
  t.ok(await isReady(nohupServer))
  t.notOk(
    terminal.alive.some(({ name }) => name.startsWith('npm')),
    'the hang-up has ended npm',
  )
  nohupServer.signal('server', 'SIGHUP')
  t.ok(await isReady(nohupServer), 'another is nothing to it either')
  nohupServer.signal('server', 'SIGTERM')
  await terminal.untilGone()
  await t.resolves(nohupServer.assertFree(), 'ports and data are free')
})

/** In the short form the one that has the launcher in front as well. */
const INTERRUPTED = [
  ['npx carpool serve', { npm_config_script_shell: 'bash' }],
  ['npm start', {}],
] as const

for (const [command, env] of IS_WHOLE ? INTERRUPTED : INTERRUPTED.slice(0, 1)) {
  test(`${command}: one Ctrl+C counts once, though a terminal, npm and the launcher all tell of it`, noTerminal, async (t) => {
    const folder = temporaryFolder(t)
    const cwd = command === 'npm start' ? {} : { cwd: projectIn(folder) }
    const terminal = openTerminal(t, command, { ...cwd, env: { ...environmentIn(folder), ...env } })
    const server = await terminal.serverIn(folder)
    await server.deploySlow('slow', 2_000)
    const call = await server.startCall('slow')
    terminal.root.stdin?.write('\x03')
    t.equal(await call.answer, 'done')
    await terminal.untilGone()
    await t.resolves(server.assertFree(), 'ports and data are free')
  })
}
