import t from 'tap'
import { bundleFunction } from '../src/index.ts'
import { runInIsolate } from './support/isolate.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

// The folders of these tests are inside the repository: packages are found in its node_modules.
const USES = `[uuid.v4(), uuid9.v4(), zod.z.object({ a: zod.z.string() }).safeParse({ a: 1 }).success, lodash.chunk([1, 2, 3], 2),
  nanoid.nanoid().length, dateFns.format(new Date(2020, 1, 2), 'yyyy-MM-dd'), typeof new hono.Hono().get('/', () => {}).fetch]`
const NAMES = {
  'uuid': 'uuid',
  'uuid9': 'uuid9',
  'zod': 'zod',
  'lodash': 'lodash',
  'nanoid': 'nanoid',
  'date-fns': 'dateFns',
  'hono': 'hono',
}

t.test('known packages work in an isolate, required by CommonJS', async (t) => {
  const requires = Object.entries(NAMES).map(([name, variable]) => `const ${variable} = require('${name}')`)
  const { code } = await bundleFunction(
    t.testdir({ 'index.cjs': `${requires.join('\n')}\nundeclared = 0\nexports.handler = () => ${USES}` }),
  )
  checkUses(t, await runInIsolate(code, 'exports.handler()'))
})

t.test('known packages work in an isolate, imported by an ES module', async (t) => {
  const imports = Object.entries(NAMES).map(([name, variable]) => {
    return name === 'lodash' ? `import ${variable} from '${name}'` : `import * as ${variable} from '${name}'`
  })
  const { code } = await bundleFunction(t.testdir({ 'index.mjs': `${imports.join('\n')}\nexport const handler = () => ${USES}` }))
  checkUses(t, await runInIsolate(code, 'exports.handler()'))
})

function checkUses(t: Tap, result: unknown): void {
  t.match(result, [UUID, UUID, false, [[1, 2], [3]], 21, '2020-02-02', 'function'])
}

type Tap = Pick<typeof import('tap').default, 'match'>

t.test('require() gets a package by its main file, import by its module file', async (t) => {
  const node_modules = {
    both: {
      'package.json': '{"main":"main.js","module":"module.mjs"}',
      'main.js': 'module.exports = () => "main"',
      'module.mjs': 'export default () => "module"',
    },
  }
  const required = await bundleFunction(t.testdir({ node_modules, 'index.cjs': 'exports.handler = require("both")' }))
  t.equal(await runInIsolate(required.code, 'exports.handler()'), 'main')
  const imported = await bundleFunction(t.testdir({ node_modules, 'index.mjs': 'export { default as handler } from "both"' }))
  t.equal(await runInIsolate(imported.code, 'exports.handler()'), 'module')
})

t.test('a package gives functions a build of their own by the condition carpool, else worker, else browser', async (t) => {
  const packageOf = (conditions: string[]) => ({
    'package.json': JSON.stringify({ exports: Object.fromEntries(conditions.map((name) => [name, `./${name}.js`])) }),
    ...Object.fromEntries(conditions.map((name) => [`${name}.js`, `module.exports = '${name}'`])),
  })
  const node_modules = {
    a: packageOf(['node', 'carpool', 'default']),
    b: packageOf(['node', 'worker', 'default']),
    c: packageOf(['node', 'browser', 'default']),
    d: packageOf(['node', 'import', 'require', 'default']),
  }
  const folder = t.testdir({
    node_modules,
    'index.cjs':
      "exports.handler = ['a', 'b', 'c', 'd'].join()\nexports.all = [require('a'), require('b'), require('c'), require('d')]",
  })
  t.same(await runInIsolate((await bundleFunction(folder)).code, 'exports.all'), ['carpool', 'worker', 'browser', 'require'])
})

t.test('JSON, text and JSX can be imported, and NODE_ENV is production', async (t) => {
  const folder = t.testdir({
    'index.tsx': `import data from './data.json'; import text from './note.txt'; import { jsx as own } from 'react/jsx-runtime'
      export const handler = () => [data, text, <b id="1">x</b>, typeof own, process.env.NODE_ENV, process.env.GREETING, global === globalThis]`,
    'data.json': '{"a":1}',
    'note.txt': 'hello',
    'node_modules': { react: { 'package.json': '{}', 'jsx-runtime.js': 'exports.jsx = (type, props) => [type, props]' } },
  })
  t.same(await runInIsolate((await bundleFunction(folder)).code, 'exports.handler()'), [
    { a: 1 },
    'hello',
    ['b', { id: '1', children: 'x' }],
    'function',
    'production',
    'hi',
    true,
  ])
})
