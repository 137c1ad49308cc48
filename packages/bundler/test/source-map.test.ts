import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { originalPositionFor, TraceMap } from '@jridgewell/trace-mapping'
import t from 'tap'
import { bundleFunction } from '../src/index.ts'
import { runInIsolate } from './support/isolate.ts'

const FIXTURES = join(import.meta.dirname, 'fixtures')

interface SourceMap {
  readonly sources: string[]
  readonly sourcesContent: string[]
}

/** The frames of a stack that are in the bundle, in positions of the sources. */
function mapStack(stack: string, sourceMap: string): string[] {
  const map = new TraceMap(sourceMap)
  return [...stack.matchAll(/bundle\.js:(\d+):(\d+)/g)].flatMap(([, line, column]) => {
    const {
      source,
      line: sourceLine,
      column: sourceColumn,
    } = originalPositionFor(map, { line: Number(line), column: Number(column) - 1 })
    return source === null ? [] : [`${source}:${sourceLine}:${sourceColumn + 1}`]
  })
}

t.test('a stack maps back to file, line and column across TypeScript, ES modules and CommonJS', async (t) => {
  const { code, sourceMap } = await bundleFunction(join(FIXTURES, 'traced'))
  const stack = await runInIsolate(code, '(() => { try { exports.default.fetch() } catch (error) { return error.stack } })()')
  t.match(stack, /^Error: boomé/)
  t.same(mapStack(String(stack), sourceMap).slice(0, 5), [
    'src/legacy.cjs:4:9',
    'src/explode.ts:6:27',
    'src/explode.ts:7:10',
    'src/explode.ts:7:10',
    'src/index.ts:10:12',
  ])
})

t.test('a stack maps back with a top-level await, and through lines that were changed', async (t) => {
  const folder = t.testdir({
    'index.mjs': "import old from './old.cjs'\nawait 0\nexport const handler = () => old.call()\n",
    'old.cjs': "exports.call = () => require('./esm.mjs').fail()\n",
    'esm.mjs': "export const fail = () => {\n  throw new Error('x')\n}\n",
  })
  const { code, sourceMap } = await bundleFunction(folder)
  const stack = await runInIsolate(code, '(() => { try { exports.handler() } catch (error) { return error.stack } })()')
  t.same(mapStack(String(stack), sourceMap).slice(0, 3), ['esm.mjs:2:9', 'old.cjs:1:43', 'index.mjs:3:34'])
})

t.test('sources are relative to the folder, with their text', async (t) => {
  const { sourceMap } = await bundleFunction(join(FIXTURES, 'traced'))
  const { sources, sourcesContent } = JSON.parse(sourceMap) as SourceMap
  t.same(sources.toSorted(), ['src/explode.ts', 'src/index.ts', 'src/legacy.cjs'])
  t.match(sourcesContent[sources.indexOf('src/explode.ts')], 'type Depth = number')
})

t.test('a source that was made CommonJS has its own text in the map', async (t) => {
  const folder = t.testdir({ 'index.mjs': "import './setup.js'; export const handler = 1", 'setup.js': 'counter = 0' })
  const { sources, sourcesContent } = JSON.parse((await bundleFunction(folder)).sourceMap) as SourceMap
  t.equal(sourcesContent[sources.indexOf('setup.js')], 'counter = 0')
})

t.test('files have their own names in the map, whatever characters are in them', async (t) => {
  const folder = t.testdir({
    'Zähl werk': {
      'index.mjs': "export * from './a%20b#c.mjs'; export * from './ü b.mjs'",
      'a%20b#c.mjs': 'export const handler = 1',
      'ü b.mjs': 'export const other = 2',
    },
  })
  const { sources } = JSON.parse((await bundleFunction(join(folder, 'Zähl werk'))).sourceMap) as SourceMap
  t.same(sources.toSorted(), ['a%20b#c.mjs', 'index.mjs', 'ü b.mjs'])
})

t.test('a bundle is the same wherever the function and its packages are, and names no folder of the machine', async (t) => {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'carpool-bundler-')))
  t.teardown(() => rm(root, { recursive: true }))
  const files: Record<string, string> = {
    'fn/index.mjs': `import old from 'old'; import { fresh } from 'fresh'; import { defineFunction } from '@carpool/sdk'; import 'node:events'
      import { shared } from '../lib/shared.mjs'; export default defineFunction({ fetch: () => [old, fresh, shared, Buffer.from('x')] })`,
    'lib/shared.mjs': 'export const shared = 1',
  }
  const packages: Record<string, string> = {
    'old/index.js': "exports.late = () => require('fresh')",
    'fresh/package.json': '{"type":"module","main":"main.js"}',
    'fresh/main.js': 'export let fresh = () => fresh',
  }
  const put = async (path: string, text: string): Promise<void> => {
    await mkdir(join(path, '..'), { recursive: true })
    await writeFile(path, text)
  }
  const places = { flat: 'a/fn', hoisted: 'b/deep/deeper/fn' }
  for (const base of ['a', 'b/deep/deeper'])
    for (const [path, text] of Object.entries(files)) await put(join(root, base, path), text)
  for (const base of ['a/fn', 'b']) {
    for (const [path, text] of Object.entries(packages)) await put(join(root, base, 'node_modules', path), text)
  }
  await symlink(join(root, 'a'), join(root, 'link'))

  const flat = await bundleFunction(join(root, places.flat))
  t.same(await bundleFunction(join(root, places.hoisted)).then(({ code, sourceMap }) => ({ code, sourceMap })), {
    code: flat.code,
    sourceMap: flat.sourceMap,
  })
  t.equal(await bundleFunction(join(root, 'link/fn')).then((linked) => linked.code), flat.code)
  const { sources } = JSON.parse(flat.sourceMap) as SourceMap
  t.ok(sources.includes('node_modules/old/index.js') && sources.includes('../lib/shared.mjs'))
  t.ok(sources.includes('node_modules/@carpool/sdk/define.ts'), 'the SDK needs no installation')
  for (const text of [flat.code, flat.sourceMap]) {
    for (const part of [root, import.meta.dirname.split('/').slice(0, 3).join('/'), '../../']) t.notOk(text.includes(part), part)
  }
  t.same(flat.inputs.toSorted(), [join(root, 'a/fn/index.mjs'), join(root, 'a/lib/shared.mjs')])
})
