/** A deploy of bad code is refused with file and line, and what was live goes on serving. */
import t from 'tap'
import { startServer, type Files } from '../support/server.ts'

interface Case {
  readonly what: string
  readonly files: Files
  readonly code: string
  readonly message: RegExp
}

const CASES: readonly Case[] = [
  {
    what: 'a syntax error',
    files: { 'index.js': 'export default {\n  fetch( { }\n}' },
    code: 'bundle-failed',
    message: /index\.js:3:1/,
  },
  {
    what: 'a module that is missing',
    files: {
      'src/index.ts': `import './other.ts'\nexport default { fetch: () => new Response() }`,
      'src/other.ts': `import 'no-such-module'`,
    },
    code: 'bundle-failed',
    message: /src\/other\.ts:1:.*no-such-module/,
  },
  {
    what: 'an ES module without a handler',
    files: { 'index.js': 'export const other = 1' },
    code: 'no-handler',
    message: /index\.js.*other/s,
  },
  {
    what: 'a CommonJS module without a handler',
    files: { 'index.js': 'exports.other = () => 1' },
    code: 'no-handler',
    message: /other/,
  },
  { what: 'an empty file', files: { 'index.js': '  \n// nothing\n' }, code: 'bundle-empty', message: /index\.js/ },
  {
    what: 'a bundle over the limit',
    files: { 'index.js': `export default { fetch: () => new Response('${'x'.repeat(60_000)}') }` },
    code: 'bundle-too-large',
    message: /50000 bytes/,
  },
  {
    what: 'a module scope that throws',
    files: { 'index.js': `export default { fetch: () => new Response() }\nconst config = undefined\nconfig.port` },
    code: 'load-failed',
    message: /index\.js:3:/,
  },
  {
    what: 'a module scope that never ends',
    files: {
      'index.js': 'export default { fetch: () => new Response() }\nfor (;;);',
      'carpool.config.json': '{"timeoutMs": 200}',
    },
    code: 'load-failed',
    message: /200 ms/,
  },
  {
    what: 'a configuration with an unknown key',
    files: { 'index.js': 'export default { fetch: () => new Response() }', 'carpool.config.json': '{"memoryMB": 64}' },
    code: 'invalid-config',
    message: /memoryMb/,
  },
  {
    what: 'a limit out of range',
    files: { 'index.js': 'export default { fetch: () => new Response() }', 'carpool.config.json': '{"memoryMb": 2}' },
    code: 'invalid-config',
    message: /8.*4096/,
  },
  {
    what: 'a built-in module that Node.js does not have',
    files: {
      'index.js': `import { nope } from 'node:nope'\nexport default { fetch: () => new Response(nope()) }`,
    },
    code: 'bundle-failed',
    message: /index\.js:1:\d+: node:nope is no module of Node\.js/,
  },
]

t.test('bad code', async (t) => {
  const server = await startServer(t, ['--max-bundle-bytes', '50000'])
  await server.deploy('app', `export default { fetch: () => new Response('still here') }`)
  for (const { what, files, code, message } of CASES) {
    await t.test(`${what} is refused`, async (t) => {
      const folder = server.write(files)
      const text = await server.carpool('deploy', folder, '--name', 'app')
      t.equal(text.code, 1)
      t.match(text.stderr, message)
      t.notMatch(text.stderr, folder, 'files are named from the folder of the function')
      t.notMatch(text.stderr, /\n\s+at .*node:internal/, 'no stack of ours')
      const { stdout, code: exit } = await server.carpool('deploy', folder, '--name', 'app', '--json')
      t.equal(exit, 1)
      t.match(JSON.parse(stdout), { error: { code } })
      t.equal(await (await server.get('/app/')).text(), 'still here')
    })
  }
  for (const name of ['Upper', 'a/b', '..', 'ä', '-a', 'a'.repeat(64), 'a b']) {
    await t.test(`the name ${JSON.stringify(name)} is refused`, async (t) => {
      const { code, stderr } = await server.carpool(
        'deploy',
        server.write('export default { fetch: () => new Response() }'),
        `--name=${name}`,
      )
      t.equal(code, 1)
      t.match(stderr, /1 to 63 of a-z, 0-9 and "-"/)
    })
  }
  t.equal((await server.json<unknown[]>('list')).length, 1)
})
