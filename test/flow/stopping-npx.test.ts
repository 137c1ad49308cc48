/** The same of `npx carpool serve`, where a shell and the launcher may stand between npm and the server. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { environmentIn, isInPath, noProc, startBy, Started, usersNodeIsOld, type Role, type Way } from '../support/started.ts'

t.jobs = 2
// Many starts, on a machine that may have much else to do.
t.setTimeout(300_000)

const noLauncher = !usersNodeIsOld() && 'the Node.js on the path is new enough: there is no launcher in front'
const noBash = !isInPath('bash') && 'there is no bash'

const IN_CHECKOUT: Way = { command: ['npx', 'carpool', 'serve'] }
const IN_PROJECT: Way = { ...IN_CHECKOUT, isInProject: true }
/** With a shell that makes way for the last command that it runs. */
const WITH_BASH: Way = { ...IN_PROJECT, env: { npm_config_script_shell: 'bash' } }

function test(title: string, skip: string | false, body: (t: Test) => Promise<void>): void {
  t.test(title, { buffered: true, skip: noProc || skip }, body)
}

function endsAfter(signal: NodeJS.Signals, role: Role, way: Way = IN_PROJECT, skip: string | false = false): void {
  test(`npx carpool serve: ${signal} to ${role}`, skip || noLauncher, async (t) => {
    const { started, server } = await startBy(t, way)
    if (role === 'shell' && !server.roles.has(role)) return void t.pass('it has made way for the command')
    server.signal(role, signal)
    await started.untilGone()
    await t.resolves(server.assertFree(), 'ports and data are free')
  })
}

endsAfter('SIGTERM', 'npm')
endsAfter('SIGHUP', 'shell')
if (IS_WHOLE) {
  // What the launcher does with signals is in launcher.test.ts as well.
  endsAfter('SIGTERM', 'launcher')
  endsAfter('SIGINT', 'server')
  for (const role of ['shell', 'server'] as const) endsAfter('SIGTERM', role)
  for (const role of ['npm', 'launcher', 'server'] as const) endsAfter('SIGHUP', role)
  endsAfter('SIGINT', 'launcher')
}
// A shell that gets SIGINT waits for the end of its command, as shells do. Only npm next to the launcher passes it on.
endsAfter('SIGINT', 'npm', WITH_BASH, noBash)
endsAfter('SIGKILL', 'launcher')

test('npm is killed: calls under way are answered, and another server can have ports and data', false, async (t) => {
  const { started, server } = await startBy(t, IN_CHECKOUT)
  await server.deploySlow('slow', 2_000)
  const call = await server.startCall('slow')
  server.signal('npm', 'SIGKILL')
  t.equal(await call.answer, 'done')
  await started.untilGone()
  t.match(started.output, /carpool: What started this process has ended: .*\(\d+\).*setsid.*nohup.*service/)
  const { url, adminUrl, dataDir } = server.address
  const folder = join(dataDir, '..')
  const env = { ...environmentIn(folder), CARPOOL_PORT: new URL(url).port, CARPOOL_ADMIN_PORT: new URL(adminUrl).port }
  const next = await new Started(t, IN_CHECKOUT.command, { env }).serverIn(folder)
  t.equal(await (await next.startCall('slow')).answer, 'done')
})
