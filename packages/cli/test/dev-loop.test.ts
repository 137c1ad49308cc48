import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ApiClient } from '../src/api-client.ts'
import { DevLoop } from '../src/dev-loop.ts'
import { Output } from '../src/output.ts'
import { logLine, startControlPlane, TOKEN } from './support/control-plane.ts'
import { captureIo } from './support/run-command.ts'

const answering = (text: string) =>
  `import { end } from './end.ts'\nexport default { fetch: () => new Response('${text}' + end) }\n`
const FILES = { 'index.ts': answering('first'), 'end.ts': `export const end = '!'\n` }

async function start(t: Test, files: Record<string, string>) {
  const plane = await startControlPlane(t)
  const folder = join(t.testdir({ hello: files }), 'hello')
  const { io, ...captured } = captureIo()
  const client = new ApiClient({ adminUrl: plane.url, token: TOKEN })
  const loop = new DevLoop({ path: folder, options: {}, client, io, output: new Output(io, false) })
  t.teardown(() => loop.close())
  return {
    ...captured,
    plane,
    loop,
    nextDeploy: () => once(plane.events, 'deploy'),
    write: (name: string, text: string) => writeFileSync(join(folder, name), text),
  }
}

t.test('the function is deployed at the start and again when a file of it changes', async (t) => {
  const { plane, loop, nextDeploy, write } = await start(t, FILES)
  t.match(await loop.start(), { name: 'hello' })
  t.match(plane.deploys[0]?.code, 'first')
  let deployed = nextDeploy()
  write('index.ts', answering('second'))
  await deployed
  t.match(plane.deploys.at(-1)?.code, 'second')
  deployed = nextDeploy()
  write('end.ts', `export const end = '?!'\n`)
  await deployed
  t.match(plane.deploys.at(-1)?.code, '?!')
})

t.test('a change that does not build is reported and leaves the live revision, until it is mended', async (t) => {
  const { plane, loop, nextDeploy, write, untilWritten } = await start(t, FILES)
  await loop.start()
  const mended = nextDeploy()
  write('index.ts', answering('second').replace('export', 'exprot'))
  await untilWritten('stderr', /carpool: .*index\.ts:2.*\nRevision 0123456789abcdef of hello stays live\.\n/)
  t.equal(plane.deploys.length, 1)
  write('index.ts', answering('third'))
  await mended
  t.match(plane.deploys.at(-1)?.code, 'third')
})

t.test('what does not build at the start is waited for, a missing file too', async (t) => {
  const { plane, loop, nextDeploy, write, written } = await start(t, { 'index.ts': FILES['index.ts'] })
  t.equal(await loop.start(), undefined)
  t.match(written().stderr, /carpool: .*end\.ts/)
  const deployed = nextDeploy()
  write('end.ts', FILES['end.ts'])
  await deployed
  t.equal(plane.deploys.length, 1)
})

t.test('what the function logs is printed', async (t) => {
  const { plane, loop, untilWritten } = await start(t, FILES)
  plane.log = [logLine('one'), logLine('two')]
  await loop.start()
  await untilWritten('stdout', /hello: one\n.*hello: two\n/)
  t.strictSame(plane.logQueries, ['?function=hello&follow=true'])
})
