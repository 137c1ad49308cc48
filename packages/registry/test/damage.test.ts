import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import type { RegistryProblem } from '../src/index.ts'
import { deploy, open, stageInput } from './fixtures/open.ts'

const fileOf = (folder: string, kind: string) =>
  join(folder, 'bundles', readdirSync(join(folder, 'bundles')).find((file) => file.endsWith(`.${kind}`)) ?? '')

t.test('a bundle that was changed on disk is refused without a path, and deploying it again mends it', async (t) => {
  const folder = t.testdir()
  const registry = open(folder)
  t.teardown(() => registry.close())
  const revision = await deploy(registry, 'hello', 'one')
  writeFileSync(fileOf(folder, 'js'), 'two')
  const error = await registry.code(revision).catch((cause) => cause)
  t.match(error, {
    code: 'data-unusable',
    message: /^The bundle of hello, revision [0-9a-f]{16}, is missing or damaged; deploy it again\.$/,
  })
  await deploy(registry, 'hello', 'one')
  t.equal((await registry.code(revision)).source, 'one')

  writeFileSync(fileOf(folder, 'map'), '{}')
  await t.rejects(registry.sourceMap(revision), { code: 'data-unusable' })
  const path = fileOf(folder, 'js')
  rmSync(path)
  spawnSync('mkfifo', [path])
  await t.rejects(registry.code(revision), { code: 'data-unusable' }, 'a named pipe is not waited for')
})

t.test('a code cache that was changed on disk is left out and reported', async (t) => {
  const folder = t.testdir()
  const problems: RegistryProblem[] = []
  const registry = open(folder, { onProblem: (problem) => problems.push(problem) })
  t.teardown(() => registry.close())
  const staged = await registry.stage(stageInput('hello', 'one'))
  const revision = await registry.publish(staged, { form: 'fetch', codeCache: Buffer.from('cache') })
  writeFileSync(fileOf(folder, 'cache'), 'evil!')
  t.same(await registry.code(revision), { source: 'one' })
  t.match(problems, [{ functionName: 'hello', revision: revision.id, detail: /code cache/ }])
})

for (const [damage, content] of [
  ['missing', undefined],
  ['empty', ''],
  ['cut short', 'on'],
] as const) {
  t.test(`a function whose bundle is ${damage} is reported and left out, and the others serve`, async (t) => {
    const folder = t.testdir()
    const before = open(folder)
    await deploy(before, 'hello', 'one')
    const path = fileOf(folder, 'js')
    await deploy(before, 'sound', 'another')
    before.close()
    if (content === undefined) spawnSync('rm', [path])
    else writeFileSync(path, content)

    const problems: RegistryProblem[] = []
    const registry = open(folder, { onProblem: (problem) => problems.push(problem) })
    t.teardown(() => registry.close())
    t.same(
      registry.list().map(({ functionName }) => functionName),
      ['sound'],
    )
    t.match(problems, [{ functionName: 'hello', detail: /bundle is missing or damaged/ }])
    await deploy(registry, 'hello', 'one')
    t.equal((await registry.code(registry.route('hello'))).source, 'one')
  })
}

t.test('files that nothing names are cleaned up at the start', async (t) => {
  const folder = t.testdir()
  const before = open(folder)
  await deploy(before, 'hello', 'one')
  before.close()
  writeFileSync(join(folder, 'bundles', 'half-written.tmp'), 'on')
  writeFileSync(join(folder, 'bundles', `${'0'.repeat(64)}.js`), 'orphan')
  writeFileSync(join(folder, 'bundles', 'notes.txt'), 'not ours')
  mkdirSync(join(folder, 'bundles', 'folder.tmp'))
  const registry = open(folder)
  t.teardown(() => registry.close())
  t.equal(registry.list().length, 1)
  const files = readdirSync(join(folder, 'bundles'))
  t.equal(files.length, 4)
  t.ok(files.includes('notes.txt') && files.includes('folder.tmp'))
})

t.test('a database from a newer version is refused, and stays as it is', async (t) => {
  const folder = t.testdir()
  open(folder).close()
  const database = new DatabaseSync(join(folder, 'registry.sqlite'))
  database.exec('PRAGMA user_version = 99')
  database.close()
  const refusal = {
    code: 'data-unusable',
    message: /newer Carpool: its registry has version 99, and this Carpool reads up to \d+\./,
  }
  t.throws(() => open(folder), refusal)
  t.throws(() => open(folder), refusal)
})

t.test('a database that is no database is refused', async (t) => {
  const folder = t.testdir({ 'registry.sqlite': 'x'.repeat(8192) })
  t.throws(() => open(folder), { code: 'data-unusable', message: /damaged/ })
})

t.test('a second server on the same folder is refused while the first one runs', async (t) => {
  const folder = t.testdir()
  const registry = open(folder)
  t.throws(() => open(folder), { code: 'data-unusable', message: 'The data folder is in use by another Carpool server.' })
  const script = `import(${JSON.stringify(new URL('./fixtures/open.ts', import.meta.url).href)}).then(({ open }) => open(${JSON.stringify(folder)})).catch((error) => console.log(error.code))`
  t.equal(spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' }).stdout.trim(), 'data-unusable')
  registry.close()
  open(folder).close()
})

t.test('database and bundles can be read by their owner only', async (t) => {
  const folder = t.testdir()
  const registry = open(folder)
  t.teardown(() => registry.close())
  await deploy(registry, 'hello', 'one')
  for (const path of [join(folder, 'registry.sqlite'), fileOf(folder, 'js')]) t.equal(statSync(path).mode & 0o077, 0)
})
