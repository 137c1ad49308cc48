import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { startCarpool } from '../src/index.ts'

t.test('options that are not valid are named, and nothing is begun', async (t) => {
  const data = join(t.testdir(), 'data')
  const refused: ReadonlyArray<readonly [object, RegExp]> = [
    [{ port: 0 }, /no option port/],
    [{ maxHost: 1 }, /no option maxHost/],
    [{ maxHosts: '1' }, /maxHosts in the options of startCarpool/],
    [{ adminPort: -1 }, /adminPort in the options of startCarpool/],
    [{ url: '/functions' }, /url must be an absolute URL/],
  ]
  for (const [options, message] of refused) {
    await t.rejects(startCarpool({ data, ...options }), { code: 'invalid-setting', message })
  }
  t.notOk(existsSync(data))
})

t.test('functions answer in an app, beside its routes and behind its hooks, until it is closed', async (t) => {
  const folder = t.testdir({
    'hello.js': 'export default { fetch: ({ url, method }) => new Response(`${method} ${new URL(url).pathname}`) }',
    'broken.js': 'throw new Error("it does not load")\nexport default () => {}',
    'slow.js': 'export default { fetch: () => new Promise((resolve) => setTimeout(() => resolve(new Response("done")), 300)) }',
  })
  const app = join(import.meta.dirname, 'support/app.ts')
  const environment = ['-i', `PATH=${process.env['PATH']}`, `CARPOOL_STATE_DIR=${join(folder, 'state')}`]
  const { stdout, stderr } = await promisify(execFile)('env', [
    ...environment,
    process.execPath,
    app,
    join(folder, 'data'),
    folder,
  ])
  t.equal(stderr, '')
  t.match(JSON.parse(stdout), {
    deployed: { functionName: 'greeter', owner: 'default', id: /^[0-9a-f]{16}$/, limits: { memoryMb: 64 } },
    broken: /^load-failed: .*it does not load.*broken\.js:1/s,
    absent: /^entry-not-found: .*absent\.js/,
    own: 'the app',
    answered: 'PUT /a/b',
    behindHook: 'who is it?',
    listed: { functions: [{ name: 'greeter', url: 'http://functions.example/functions/greeter/', invocations: 1 }] },
    removedAgain: /^not-found: /,
    gone: 'not-found',
    draining: 'draining',
    underWay: 'done',
    control: /^TypeError: fetch failed/,
    ownAtTheEnd: 'the app',
  })
})
