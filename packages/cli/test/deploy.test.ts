import { CarpoolError } from '@carpool/core'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { infoOf, startControlPlane, TOKEN } from './support/control-plane.ts'
import { runCommand } from './support/run-command.ts'

const HELLO = `export default { fetch: () => new Response('hello') }\n`

async function start(t: Test) {
  const plane = await startControlPlane(t)
  const env = { CARPOOL_URL: plane.url, CARPOOL_TOKEN: TOKEN }
  return { plane, deploy: (...argv: string[]) => runCommand(['deploy', ...argv], { env }) }
}

t.test('deploy sends a bundle with its source map under the name of the folder', async (t) => {
  const { plane, deploy } = await start(t)
  const folder = join(t.testdir({ hello: { 'index.ts': HELLO } }), 'hello')
  const { exitCode, stdout, stderr } = await deploy(folder)
  t.match({ exitCode, stderr }, { exitCode: 0, stderr: '' })
  t.match(stdout, /^Deployed hello, revision 0123456789abcdef, \d+ KiB: http.*\/hello\/\n$/)
  const [sent] = plane.deploys
  t.match(sent, { code: /new Response/, env: {}, limits: {} })
  t.equal(JSON.parse(sent?.sourceMap ?? '').version, 3)
})

t.test('flags say the name, the handler, the limits and the variables', async (t) => {
  const { plane, deploy } = await start(t)
  const file = join(t.testdir({ 'app.cjs': `exports.run = async () => ({ statusCode: 200 })\n` }), 'app.cjs')
  const flags = [
    '--name',
    'other',
    '--handler',
    'app.run',
    '--memory-mb',
    '64',
    '--timeout-ms',
    '500',
    '--env',
    'A=1=2',
    '--env',
    'B=',
  ]
  t.match(await deploy(file, ...flags), { exitCode: 0, stderr: '' })
  t.ok(plane.functions.has('other'))
  t.match(plane.deploys[0], { handlerExport: 'run', limits: { memoryMb: 64, wallMs: 500 }, env: { A: '1=2', B: '' } })
})

t.test('the config file counts where no flag is given', async (t) => {
  const { plane, deploy } = await start(t)
  const config = {
    name: 'configured',
    memoryMb: 100,
    timeoutMs: 200,
    streamMs: 0,
    idleMs: 9_000,
    concurrency: 3,
    env: { A: 'config', B: 'config' },
  }
  const folder = t.testdir({ 'index.ts': HELLO, 'carpool.config.json': JSON.stringify(config) })
  t.match(await deploy(folder, '--timeout-ms', '500', '--idle-ms', '8000', '--env', 'B=flag'), { exitCode: 0, stderr: '' })
  t.ok(plane.functions.has('configured'))
  t.strictSame(plane.deploys[0]?.limits, { memoryMb: 100, wallMs: 500, streamMs: 0, idleMs: 8_000, concurrency: 3 })
  t.strictSame(plane.deploys[0]?.env, { A: 'config', B: 'flag' })
})

t.test('deploy --json prints what the server tells of the function, and which server it is', async (t) => {
  const { plane, deploy } = await start(t)
  const folder = join(t.testdir({ hello: { 'index.ts': HELLO } }), 'hello')
  const { stdout } = await deploy(folder, '--json')
  t.strictSame(JSON.parse(stdout), { ...infoOf('hello', plane.deploys[0]), server: plane.url })
})

t.test('a function that does not build is not sent, and the error names file and line', async (t) => {
  const { plane, deploy } = await start(t)
  const folder = join(t.testdir({ hello: { 'index.ts': `export default {\n  fetch() { return ) }\n}\n` } }), 'hello')
  const { exitCode, stdout, stderr } = await deploy(folder, '--json')
  t.equal(exitCode, 1)
  t.match(stderr, /^carpool: .*index\.ts:2:.*\n$/)
  t.match(JSON.parse(stdout), { error: { code: 'bundle-failed', detail: /index\.ts:2/ } })
  t.strictSame(plane.deploys, [])
})

t.test('a name with odd characters is refused', async (t) => {
  const { plane, deploy } = await start(t)
  const folder = join(t.testdir({ hello: { 'index.ts': HELLO } }), 'hello')
  const { exitCode, stderr } = await deploy(folder, '--name', 'Odd Name!')
  t.equal(exitCode, 1)
  t.match(stderr, '"Odd Name!" is no function name')
  t.strictSame(plane.deploys, [])
})

t.test('what the server refuses is reported with exit code 1', async (t) => {
  const { plane, deploy } = await start(t)
  const folder = join(t.testdir({ hello: { 'index.ts': HELLO } }), 'hello')
  plane.refusal = new CarpoolError('load-failed', 'index.ts:1:1: boom')
  t.match(await deploy(folder), { exitCode: 1, stdout: '', stderr: 'carpool: index.ts:1:1: boom\n' })
})
