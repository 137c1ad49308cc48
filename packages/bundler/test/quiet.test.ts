import { spawnSync } from 'node:child_process'
import t from 'tap'

t.test('what Node warns of when one of its modules is loaded is not said where a function is bundled', async (t) => {
  const modules = ['sqlite', 'wasi', 'test', 'test/reporters', 'punycode', 'sea', 'trace_events', 'inspector', 'v8', 'domain']
  const folder = t.testdir({
    'index.mjs': `${modules.map((name, index) => `import * as m${index} from 'node:${name}'`).join('\n')}
      export default { fetch: () => new Response(typeof [${modules.map((_, index) => `m${index}`).join()}]) }`,
    'index.cjs': `exports.all = () => [${modules.map((name) => `require('node:${name}')`).join()}]`,
  })
  const program = `
    const { bundleFunction } = await import(${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)})
    const { code } = await bundleFunction(${JSON.stringify(folder)})
    process.emitWarning('still heard')
    console.log(code.length > 1000)`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
  })
  t.equal(stdout, 'true\n')
  t.match(stderr.replaceAll(/\(Use `node.*\n/g, ''), /^\(node:\d+\) Warning: still heard\n$/)
})
