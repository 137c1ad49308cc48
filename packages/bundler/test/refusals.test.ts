import { join } from 'node:path'
import t from 'tap'
import { bundleFunction } from '../src/index.ts'
import { refusalOf } from './support/refusal.ts'

const FIXTURES = join(import.meta.dirname, 'fixtures')

t.test('a syntax error names file, line and column, and shows the line', async (t) => {
  const { code, message } = await refusalOf(bundleFunction(join(FIXTURES, 'broken-syntax')))
  t.equal(code, 'bundle-failed')
  const [first, line = '', mark = '', ...more] = message.split('\n')
  t.equal(first, 'index.ts:2:17: Expected ")" but found "{"')
  t.match(line, /^ {2}2 \| .*\{/)
  t.equal(mark, `    | ${' '.repeat(16)}^`)
  t.same(more, [])
})

t.test('a line is shown in part if it is long, and characters are counted, not bytes', async (t) => {
  const folder = t.testdir({ 'index.ts': `const a = '${'é'.repeat(300)}'; const b = ; export const handler = a\n` })
  const { message } = await refusalOf(bundleFunction(folder))
  const [first, line = '', mark = ''] = message.split('\n')
  t.equal(first, 'index.ts:1:325: Unexpected ";"')
  t.ok(line.length < 120)
  t.equal(line.at(mark.indexOf('^')), ';')
})

t.test('what several modules import and there is not is named once, with who imports it', async (t) => {
  const folder = t.testdir({
    'index.ts': "import 'left-pad'\nimport './a.ts'\nexport const handler = 1\n",
    'a.ts': "import 'left-pad'\n",
  })
  t.equal(
    (await refusalOf(bundleFunction(folder))).message,
    [
      'a.ts:1:8: Could not resolve "left-pad"; also imported by index.ts:1:8',
      "  1 | import 'left-pad'",
      '    |        ^^^^^^^^^^',
    ].join('\n'),
  )
})

t.test('a missing package and a missing file are named, with all other errors', async (t) => {
  const folder = t.testdir({
    'src': {
      'index.ts': "import 'left-pad'\nimport './gone.ts'\nimport { no } from './some.ts'\nexport default { fetch: no }\n",
      'some.ts': 'export const yes = 1\n',
    },
  })
  t.same(await refusalOf(bundleFunction(folder)), {
    code: 'bundle-failed',
    message: [
      'src/index.ts:1:8: Could not resolve "left-pad"',
      "  1 | import 'left-pad'",
      '    |        ^^^^^^^^^^',
      'src/index.ts:2:8: Could not resolve "./gone.ts"',
      "  2 | import './gone.ts'",
      '    |        ^^^^^^^^^^^',
    ].join('\n'),
  })
})

t.test('an error in a package names the file in the package', async (t) => {
  const node_modules = { bad: { 'index.js': 'exports.a = ;' } }
  const folder = t.testdir({ node_modules, 'fn': { 'index.ts': "import 'bad'; export const handler = 1" } })
  t.match(await refusalOf(bundleFunction(join(folder, 'fn'))), {
    message: /^node_modules\/bad\/index\.js:1:13: Unexpected ";"\n {2}1 \| exports\.a = ;\n/,
  })
})

t.test('at most ten errors are listed', async (t) => {
  const lines = Array.from({ length: 25 }, (_, index) => `import './gone-${index}.ts'`)
  const { message } = await refusalOf(bundleFunction(t.testdir({ 'index.ts': lines.join('\n') })))
  t.equal(message.match(/Could not resolve/g)?.length, 10)
  t.match(message, /and 15 more$/)
})

t.test('an error beside a top-level await is the error that is reported', async (t) => {
  const folder = t.testdir({ 'index.ts': "await 0\nimport './gone.ts'\nexport const handler = 1\n" })
  t.match((await refusalOf(bundleFunction(folder))).message, /^index\.ts:2:8: Could not resolve "\.\/gone\.ts"\n/)
})

t.test('CommonJS cannot require what awaits at its top level', async (t) => {
  const folder = t.testdir({ 'index.cjs': "exports.handler = require('./a.mjs')\n", 'a.mjs': 'await 0\nexport default 1\n' })
  t.match(await refusalOf(bundleFunction(folder)), {
    code: 'bundle-failed',
    message: 'index.cjs:1:19: a.mjs awaits at its top level, so it cannot be required; use import().',
  })
})

for (const [what, text] of Object.entries({
  'nothing': '',
  'whitespace': ' \n\t\n',
  'comments': '// a\n/* b */\n',
  'types': 'type A = 1\n',
})) {
  t.test(`an entry of ${what} is refused as empty`, async (t) => {
    t.match(await refusalOf(bundleFunction(t.testdir({ 'index.ts': text }))), {
      code: 'bundle-empty',
      message: /^index\.ts is empty/,
    })
  })
}

t.test('a bundle over the limit is refused with its size and the limit, and one at the limit is not', async (t) => {
  const file = join(t.testdir({ 'index.cjs': `exports.handler = () => ${JSON.stringify('é'.repeat(5000))}` }), 'index.cjs')
  const { code } = await bundleFunction(file)
  const bytes = Buffer.byteLength(code)
  t.match(await refusalOf(bundleFunction(file, { limitBytes: bytes - 1 })), {
    code: 'bundle-too-large',
    message: `has ${bytes} bytes; the limit is ${bytes - 1} bytes.`,
  })
  t.equal((await refusalOf(bundleFunction(file, { limitBytes: bytes }))).code, 'none')
})

t.test('a bundle of fifty megabytes is refused without being read, and one of thirty without being taken apart', async (t) => {
  // As a tree it would take gigabytes.
  const large = `export default () => [${'[1],'.repeat(12_500_000)}]`
  const folder = t.testdir({
    'large.js': large,
    'index.js': `import large from './large.js'; export default large`,
    'text.js': `export default () => '${'x'.repeat(30_000_000)}'`,
  })
  const entry = await refusalOf(bundleFunction(join(folder, 'large.js')))
  t.same(entry, {
    code: 'bundle-too-large',
    message: `large.js has ${large.length} bytes, which cannot become a bundle: its limit is 10485760 bytes.`,
  })
  const imported = await refusalOf(bundleFunction(join(folder, 'index.js')))
  t.equal(imported.code, 'bundle-failed')
  t.match(imported.message, /^index\.js:1:19: large\.js has \d+ bytes, which cannot become a bundle/)
  const text = await refusalOf(bundleFunction(join(folder, 'text.js')))
  t.equal(text.code, 'bundle-too-large')
  t.match(text.message, /^The bundle of .* has \d{8} bytes; the limit is 10485760 bytes\.$/)
})

t.test('an ES module without a handler is refused with its file and what it exports', async (t) => {
  t.same(await refusalOf(bundleFunction(t.testdir({ 'src': { 'index.ts': 'export const a = 1\nexport function b() {}\n' } }))), {
    code: 'no-handler',
    message: 'src/index.ts:1: the function has no export "default" or "handler"; it exports a, b.',
  })
  t.match(await refusalOf(bundleFunction(t.testdir({ 'index.js': 'globalThis.x = 1' }))), {
    code: 'no-handler',
    message: /exports nothing/,
  })
  t.match(await refusalOf(bundleFunction(t.testdir({ 'index.mjs': 'await 0; export const x = 1' }))), {
    code: 'no-handler',
    message: /exports x/,
  })
})

t.test('the export of a handler string must be there', async (t) => {
  const folder = t.testdir({ 'index.ts': 'export const handler = 1\nexport const other = 1\n' })
  t.match(await refusalOf(bundleFunction(folder, { handler: 'index.nope' })), {
    code: 'no-handler',
    message: 'index.ts:1: the function has no export "nope"; it exports handler, other.',
  })
  t.equal((await bundleFunction(folder, { handler: 'other' })).handlerExport, 'other')
})

t.test('what an ES module passes on from CommonJS, and what CommonJS exports, is left to the server', async (t) => {
  const folder = t.testdir({ 'index.mjs': "export * from './a.cjs'", 'a.cjs': 'exports.handler = 1' })
  t.equal((await refusalOf(bundleFunction(folder))).code, 'none')
  t.equal((await refusalOf(bundleFunction(join(folder, 'a.cjs'), { handler: 'nope' }))).code, 'none')
})
