import { join } from 'node:path'
import t from 'tap'
import { bundleFunction } from '../src/index.ts'
import { refusalOf } from './support/refusal.ts'

/** The paths, relative to the folder, that a bundle was made of. */
async function inputsOf(folder: string, handler?: string): Promise<string[]> {
  const { inputs } = await bundleFunction(folder, handler === undefined ? {} : { handler })
  return inputs.map((path) => path.slice(folder.length + 1)).filter((path) => path !== 'package.json')
}

const HANDLER = 'export const handler = 1'

t.test('a folder has index.* before src/index.*, TypeScript before JavaScript', async (t) => {
  const folder = t.testdir({ 'index.js': HANDLER, 'index.ts': HANDLER, 'src': { 'index.ts': HANDLER } })
  t.same(await inputsOf(folder), ['index.ts'])
  t.same(await inputsOf(t.testdir({ 'src': { 'index.mjs': 'export const handler = 1' } })), ['src/index.mjs'])
})

t.test('package.json comes first: module, then main, with or without the extension', async (t) => {
  const files = { 'index.js': HANDLER, 'a.js': HANDLER, 'lib': { 'index.js': HANDLER } }
  const withManifest = (manifest: object): string => t.testdir({ ...files, 'package.json': JSON.stringify(manifest) })
  t.same(await inputsOf(withManifest({ module: './a.js', main: 'lib' })), ['a.js'])
  t.same(await inputsOf(withManifest({ main: 'a' })), ['a.js'])
  t.same(await inputsOf(withManifest({ main: './lib/' })), ['lib/index.js'])
  t.same(await inputsOf(withManifest({ main: 'gone.js' })), ['index.js'])
  t.same(await inputsOf(withManifest({})), ['index.js'])
})

t.test('a handler string names the file, and comes before package.json', async (t) => {
  const folder = t.testdir({ 'package.json': '{"main":"a.js"}', 'a.js': HANDLER, 'src': { 'my.app.ts': 'export const run = 1' } })
  t.same(await inputsOf(folder, 'src/my.app.run'), ['src/my.app.ts'])
  t.equal((await bundleFunction(folder, { handler: './src/my.app.run' })).handlerExport, 'run')
})

t.test("the config's entry comes before its handler's file, and a handler given by the caller before both", async (t) => {
  const folder = t.testdir({
    'carpool.config.json': '{"entry":"a.js","handler":"b.handler"}',
    'a.js': `${HANDLER}; export const other = 1`,
    'b.js': HANDLER,
    'c.js': HANDLER,
  })
  t.same(await inputsOf(folder), ['a.js', 'carpool.config.json'])
  t.equal((await bundleFunction(folder)).handlerExport, 'handler')
  t.same(await inputsOf(folder, 'c.handler'), ['c.js', 'carpool.config.json'])
  t.same(await inputsOf(folder, 'other'), ['a.js', 'carpool.config.json'])
})

t.test('a file is bundled as it is, and a handler string must agree with it', async (t) => {
  const folder = t.testdir({ 'a.js': HANDLER, 'carpool.config.json': '{"memoryMb":64}' })
  t.same(
    await bundleFunction(join(folder, 'a.js'), { handler: 'a.handler' }).then(({ config, handlerExport }) => ({
      config,
      handlerExport,
    })),
    {
      config: {},
      handlerExport: 'handler',
    },
  )
  t.match(await refusalOf(bundleFunction(join(folder, 'a.js'), { handler: 'b.handler' })), {
    code: 'entry-not-found',
    message: /names the file b/,
  })
})

t.test('what is not there is refused with what was looked for', async (t) => {
  t.match(await refusalOf(bundleFunction('no/such/folder')), {
    code: 'entry-not-found',
    message: 'There is no file or folder no/such/folder.',
  })
  t.match(await refusalOf(bundleFunction(t.testdir({}))), {
    code: 'entry-not-found',
    message: /"module" and "main" in package\.json, index\.\* and src\/index\.\*/,
  })
  t.match(await refusalOf(bundleFunction(t.testdir({ 'package.json': '{"main":"gone.js"}' }))), { message: /\(gone\.js\)/ })
  t.match(await refusalOf(bundleFunction(join(t.testdir({ 'a.txt': 'x' }), 'a.txt'))), {
    code: 'entry-not-found',
    message: /is no source file/,
  })
  const folder = t.testdir({ 'carpool.config.json': '{"entry":"gone.ts"}', 'index.ts': HANDLER })
  t.match(await refusalOf(bundleFunction(folder)), { code: 'entry-not-found', message: /names the entry "gone\.ts"/ })
  t.match(await refusalOf(bundleFunction(folder, { handler: 'src/gone.handler' })), {
    code: 'entry-not-found',
    message: /names the file src\/gone/,
  })
})

for (const handler of ['', '.', 'a.', '.b', 'a..b', 'src/', 'src/a', 'a b', '1a']) {
  t.test(`${JSON.stringify(handler)} is no handler string`, async (t) => {
    t.match(await refusalOf(bundleFunction(t.testdir({ 'index.js': HANDLER }), { handler })), { code: 'invalid-config' })
  })
}

t.test('a name is suggested from the folder or the file', async (t) => {
  const folder = t.testdir({
    'My Fünny_Folder!': { 'index.js': HANDLER, 'Other.One.js': HANDLER, 'ü.js': HANDLER, '日本.js': HANDLER },
  })
  const nameOf = async (path: string): Promise<string> =>
    (await bundleFunction(join(folder, 'My Fünny_Folder!', path))).suggestedName
  t.equal(await nameOf(''), 'my-funny-folder')
  t.equal(await nameOf('index.js'), 'my-funny-folder')
  t.equal(await nameOf('Other.One.js'), 'other-one')
  t.equal(await nameOf('ü.js'), 'u')
  t.equal(await nameOf('日本.js'), 'function')
})
