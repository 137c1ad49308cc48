import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { bundleFunction } from '../src/index.ts'
import { runInIsolate } from './support/isolate.ts'

/** Bundles `index.*` or the given entry of files, and evaluates an expression over its exports in an isolate. */
async function run(test: Test, files: Record<string, string>, expression: string, entry = ''): Promise<unknown> {
  // Without it the repository's package.json would say that all is ES modules.
  const { code } = await bundleFunction(join(test.testdir({ 'package.json': '{}', ...files }), entry))
  return runInIsolate(code, expression)
}

const STRICT = '(function () { return this === undefined })()'
const LEAK = 'try { leaked = 1; delete globalThis.leaked; return "sloppy" } catch (error) { return error.name }'

t.test('CommonJS runs in sloppy mode', async (t) => {
  const files = { 'index.cjs': `counter = 0; exports.handler = () => (counter += 2); exports.strict = ${STRICT}` }
  t.same(await run(t, files, '[exports.handler(), exports.handler(), exports.strict]'), [2, 4, false])
})

t.test('CommonJS may use what strict mode forbids', async (t) => {
  const files = {
    'index.cjs': `var static = 1; with ({ a: 1 }) { exports.a = a }; exports.b = 010; delete static
      exports.handler = function f(x, x) { return typeof arguments.callee }`,
  }
  t.same(await run(t, files, '[exports.a, exports.b, exports.handler()]'), [1, 8, 'function'])
})

t.test('`this` at the top of CommonJS is module.exports, also without another sign of CommonJS', async (t) => {
  t.same(await run(t, { 'index.js': 'this.handler = () => 1' }, 'exports.handler()'), 1)
  t.same(await run(t, { 'index.js': 'exports.handler = () => 1; exports.same = this === module.exports' }, 'exports.same'), true)
})

t.test('module.exports of a CommonJS entry is what the factory returns', async (t) => {
  t.same(await run(t, { 'index.js': 'module.exports = async () => 7' }, 'exports()'), 7)
})

t.test('ES modules run in strict mode', async (t) => {
  const files = { 'index.mjs': `export const strict = ${STRICT}; export function handler() { ${LEAK} }` }
  t.same(await run(t, files, '[exports.strict, exports.handler()]'), [true, 'ReferenceError'])
})

t.test('an ES module with a CommonJS dependency: each in its own mode', async (t) => {
  const files = {
    'index.mjs': `import old from './old.cjs'; import { b } from './b.mjs'
      export const strict = ${STRICT}; export function handler() { ${LEAK} }; export const modes = [old.leaks(), old.strict, b]`,
    'b.mjs': `export const b = ${STRICT}`,
    'old.cjs': `hidden = 1; exports.strict = ${STRICT}; exports.leaks = () => { ${LEAK} }`,
  }
  t.same(await run(t, files, '[exports.strict, exports.handler(), exports.modes]'), [
    true,
    'ReferenceError',
    ['sloppy', false, true],
  ])
})

t.test(
  'a CommonJS entry that requires an ES module which imports CommonJS: each in its own mode, each loaded once',
  async (t) => {
    const files = {
      'index.cjs': `const esm = require('./esm.mjs'); exports.same = require('./old.cjs') === esm.old
      exports.modes = [${STRICT}, esm.strict, esm.leak(), esm.old.strict]; exports.live = () => [esm.count, esm.bump(), esm.count]
      exports.handler = () => { ${LEAK} }; exports.later = () => import('./esm.mjs').then((it) => it === esm || it.count)`,
      'esm.mjs': `import old from './old.cjs'; export { old }; export let count = 0; export const bump = () => ++count
      export const strict = ${STRICT}; export function leak() { ${LEAK} }`,
      'old.cjs': `loads = (globalThis.loads ?? 0) + 1; exports.strict = ${STRICT}; exports.loads = () => loads`,
    }
    t.same(
      await run(
        t,
        files,
        '[exports.same, exports.modes, exports.live(), exports.handler(), await exports.later(), loads]',
        'index.cjs',
      ),
      [true, [false, true, 'ReferenceError', false], [0, 1, 1], 'sloppy', 1, 1],
    )
  },
)

t.test('a script without any sign of its format is CommonJS, as in Node, unless package.json says otherwise', async (t) => {
  const files = {
    'index.mjs': "import './setup.js'; export const handler = () => counter",
    'setup.js': '// no sign\ncounter = 41',
  }
  t.same(await run(t, files, 'exports.handler()'), 41)
  const modules = { ...files, 'package.json': '{"type":"module"}' }
  t.match(await run(t, modules, '1').catch((error: Error) => error.message), 'counter is not defined')
})

t.test('TypeScript has the module format that its extension or its syntax says', async (t) => {
  const loose = 'leaked = 1 as number; module.exports = { handler: (): number => leaked }'
  t.same(await run(t, { 'index.cts': loose }, 'exports.handler()'), 1)
  t.same(await run(t, { 'index.ts': loose }, 'exports.handler()'), 1)
  t.same(await run(t, { 'index.ts': `export const handler = (): string => { ${LEAK} }` }, 'exports.handler()'), 'ReferenceError')
})

t.test('circular imports across the formats end', async (t) => {
  const files = {
    'index.mjs': "import { a } from './a.cjs'; export const name = 'index'; export const handler = () => a()",
    'a.cjs': "const main = require('./index.mjs'); exports.a = () => main.name",
  }
  t.same(await run(t, files, 'exports.handler()'), 'index')
})

t.test('an ES module may await at its top level: then the factory gives a promise', async (t) => {
  const files = {
    'index.mjs': `import old from './old.cjs'; const value = await Promise.resolve(5); export { value as 'odd name' }
      export const meta = import.meta.url; export default { fetch: () => { ${LEAK} } }; export const modes = [${STRICT}, old.strict]`,
    'old.cjs': `hidden = 1; exports.strict = ${STRICT}`,
  }
  t.same(await run(t, files, "[exports['odd name'], exports.meta, exports.default.fetch(), exports.modes]"), [
    5,
    'file:///opt/carpool/function/index.mjs',
    'ReferenceError',
    [true, false],
  ])
})

t.test('a CommonJS entry may import() what awaits at its top level: then its factory gives a promise too', async (t) => {
  const files = {
    'index.cjs': "leaked = 1; exports.handler = async () => (await import('./a.mjs')).default + leaked",
    'a.mjs': 'await 0; export default 2',
  }
  t.same(await run(t, files, 'exports.handler()', 'index.cjs'), 3)
})

t.test('a class, a destructured constant and a function keep their names and values when CommonJS sees the module', async (t) => {
  const files = {
    'index.cjs': "exports.handler = () => { const m = require('./m.mjs'); return [m.A.name, m.x, m.y, m.f.name] }",
    'm.mjs': 'export class A {}; export const { x, y = 2 } = { x: 1 }; export function f() {}',
  }
  t.same(await run(t, files, 'exports.handler()'), ['A', 1, 2, 'f'])
})

t.test("`strict` in tsconfig.json makes no CommonJS strict, a 'use strict' of its own does", async (t) => {
  const files = {
    'tsconfig.json': '{"compilerOptions":{"strict":true}}',
    'index.mjs':
      "import a from './a.cjs'; import b from './b.cjs'; import c from './c.cts'; import d from './d.cjs'; export const modes = [a, b, c, d]; export default 1",
    'a.cjs': `module.exports = ${STRICT}`,
    'b.cjs': `/* own */ 'other directive'; "use strict"\nmodule.exports = ${STRICT}`,
    'd.cjs': `/* a */ module.exports = ${STRICT} /* b */; "use strict"`,
    'c.cts': `// 'use strict'\nmodule.exports = ${STRICT} as boolean`,
  }
  t.same(await run(t, files, 'exports.modes', 'index.mjs'), [false, true, false, false])
})

t.test('in any graph of modules each runs once, in the mode of its format', async (t) => {
  const module = fc.record({ isEsm: fc.boolean(), imports: fc.array(fc.nat(), { maxLength: 3 }) })
  const graph = fc.array(module, { minLength: 1, maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(graph, async (modules) => {
      const nameOf = (index: number): string => `m${index}.${modules[index]!.isEsm ? 'mjs' : 'cjs'}`
      const files = modules.map(({ isEsm, imports }, index) => {
        // Only later modules, so that every one has run before it is used.
        const targets = [...new Set([index + 1, ...imports.map((it) => index + 1 + it)])].filter((it) => it < modules.length)
        const loads = targets.map((it) =>
          isEsm ? `import * as v${it} from './${nameOf(it)}'` : `const v${it} = require('./${nameOf(it)}')`,
        )
        const seen = `[['${nameOf(index)}', ${STRICT}], ${targets.map((it) => `...v${it}.seen`).join(', ')}]`
        const count = `globalThis.runs = (globalThis.runs ?? 0) + 1`
        const exported = isEsm ? `export const seen = ${seen}; export const handler = 1` : `exports.seen = ${seen}`
        return [nameOf(index), [...loads, count, exported].join('\n')]
      })
      const seen = (await run(t, Object.fromEntries(files), '[runs, exports.seen]', nameOf(0))) as [number, [string, boolean][]]
      const wrong = seen[1].filter(([name, isStrict]) => isStrict !== name.endsWith('.mjs'))
      return seen[0] === modules.length && wrong.length === 0 && new Set(seen[1].map(([name]) => name)).size === modules.length
    }),
    { numRuns: 40 },
  )
})
