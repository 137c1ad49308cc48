import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { CarpoolError } from '@carpool/core'
import t from 'tap'
import type { RouteChange } from '../src/index.ts'
import { deploy, open, stageInput } from './fixtures/open.ts'

const bundlesIn = (folder: string) => readdirSync(join(folder, 'bundles')).filter((file) => file.endsWith('.js'))

t.test('a published revision answers to its name, and again after a restart', async (t) => {
  const folder = t.testdir()
  const registry = open(folder, { now: () => new Date(0) })
  const staged = await registry.stage({
    ...stageInput('hello', 'let a = "é"'),
    config: stageInput('hello', '', { KEY: 'value' }).config,
  })
  const revision = await registry.publish(staged, { form: 'lambda', codeCache: Buffer.from('cache') })
  t.match(revision, {
    functionName: 'hello',
    owner: 'ann',
    form: 'lambda',
    env: { KEY: 'value' },
    codeBytes: 12,
    createdAt: '1970-01-01T00:00:00.000Z',
  })
  t.match(revision.id, /^[0-9a-f]{16}$/)
  t.equal(registry.route('hello'), revision)
  registry.close()

  const reopened = open(folder)
  t.teardown(() => reopened.close())
  t.same(reopened.list(), [revision])
  t.same(await reopened.code(revision), { source: 'let a = "é"', codeCache: Buffer.from('cache') })
  t.equal(await reopened.sourceMap(revision), '{"of":"let a = \\"é\\""}')
})

t.test('a name that nothing was deployed under is not found', async (t) => {
  const registry = open(t.testdir())
  t.teardown(() => registry.close())
  t.throws(() => registry.route('nobody'), { code: 'not-found' })
  t.equal(registry.find('nobody'), undefined)
  t.throws(() => registry.route('__proto__'), { code: 'not-found' })
  t.throws(() => registry.remove('nobody'), { code: 'not-found' })
})

t.test('the id depends on code and configuration, and not on the order of keys', async (t) => {
  const registry = open(t.testdir())
  t.teardown(() => registry.close())
  const idOf = async (code: string, env: Record<string, string>) => (await registry.stage(stageInput('hello', code, env))).id
  t.equal(await idOf('a', { X: '1', Y: '2' }), await idOf('a', { Y: '2', X: '1' }))
  t.not(await idOf('a', {}), await idOf('b', {}))
  t.not(await idOf('a', {}), await idOf('a', { X: '1' }))
})

t.test('staging refuses an empty or oversized bundle and a bad name, and names the limit', async (t) => {
  const registry = open(t.testdir(), { maxBundleBytes: 10 })
  t.teardown(() => registry.close())
  const refusal = (name: string, code: string): Promise<CarpoolError> =>
    registry.stage(stageInput(name, code)).then(
      () => t.fail('was staged') as never,
      (error) => error,
    )
  t.match(await refusal('hello', ' \n'), { code: 'bundle-empty', message: 'The bundle of hello is empty.' })
  t.match(await refusal('hello', 'éééééé'), {
    code: 'bundle-too-large',
    message: 'The bundle of hello has 12 bytes; the limit is 10 bytes.',
  })
  t.match(await refusal('../hello', 'x'), { code: 'invalid-name' })
  await t.rejects(registry.stage({ ...stageInput('hello', 'x'), sourceMap: ' '.repeat(41) }), { code: 'bundle-too-large' })
})

t.test('a deploy that would take of the disk what is kept for the ledger is refused, and leaves nothing behind', async (t) => {
  const folder = t.testdir()
  const disk = { freeBytes: 1_000, totalBytes: 10_000 }
  const registry = open(folder, { diskSpace: () => disk })
  t.teardown(() => registry.close())
  const stage = (code: string, sourceMap: string) => registry.stage({ ...stageInput('hello', code), sourceMap })
  await registry.publish(await stage('one', 'x'.repeat(497)), { form: 'fetch' })
  t.doesNotThrow(() => registry.requireRoom())
  await t.rejects(stage('x'.repeat(501), '{}'), { code: 'saturated', message: /501 bytes.*1 MiB/ })
  disk.freeBytes = 501
  await t.rejects(stage('two', '{}'), { code: 'saturated' })
  t.equal(readdirSync(join(folder, 'bundles')).length, 2)
  const cached = { form: 'fetch', codeCache: Buffer.from('cache') } as const
  await t.resolves(registry.publish(await stage('one', 'x'.repeat(497)), cached), 'what is there already takes no room')
  t.equal(readdirSync(join(folder, 'bundles')).length, 2, 'and its code cache can be made again')
  disk.freeBytes = 499
  t.throws(() => registry.requireRoom(), { code: 'saturated' })
  t.ok(await stage('one', 'x'.repeat(497)))
  disk.freeBytes = 10_000
  await t.resolves(stage('two', '{}'))
})

t.test('deploys at the same time do not take the same room', async (t) => {
  const registry = open(t.testdir(), { diskSpace: () => ({ freeBytes: 600, totalBytes: 10_000 }) })
  t.teardown(() => registry.close())
  const stage = (code: string) => registry.stage({ ...stageInput('hello', code), sourceMap: code.repeat(60) })
  const results = await Promise.allSettled([stage('a'), stage('b')])
  t.strictSame(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
})

t.test('a staged revision answers to nothing until it is published, and leaves no file once it is discarded', async (t) => {
  const folder = t.testdir()
  const registry = open(folder)
  t.teardown(() => registry.close())
  const live = await deploy(registry, 'hello', 'one')
  const staged = await registry.stage(stageInput('hello', 'two'))
  t.equal(registry.route('hello'), live)
  t.equal(bundlesIn(folder).length, 2)
  registry.discard(staged)
  t.equal(bundlesIn(folder).length, 1)
  await t.rejects(registry.publish(staged, { form: 'fetch' }), { code: 'internal' })

  const again = await registry.stage(stageInput('hello', 'one'))
  registry.discard(again)
  t.equal((await registry.code(live)).source, 'one', 'what the live revision shares stays')
})

t.test('listeners hear of each change of a route, with what it replaced', async (t) => {
  const registry = open(t.testdir())
  t.teardown(() => registry.close())
  const changes: RouteChange[] = []
  const stop = registry.onRouteChange((change) => changes.push(change))
  const one = await deploy(registry, 'hello', 'one')
  const two = await deploy(registry, 'hello', 'two')
  await deploy(registry, 'hello', 'two')
  registry.remove('hello')
  stop()
  await deploy(registry, 'hello', 'three')
  t.same(changes, [
    { functionName: 'hello', current: one },
    { functionName: 'hello', previous: one, current: two },
    { functionName: 'hello', previous: two },
  ])
})

t.test('what is live already can be published again, and a former revision becomes the newest', async (t) => {
  let day = 0
  const registry = open(t.testdir(), { now: () => new Date(86_400_000 * day++) })
  t.teardown(() => registry.close())
  const one = await deploy(registry, 'hello', 'one')
  t.same(await deploy(registry, 'hello', 'one'), one)
  const two = await deploy(registry, 'hello', 'two')
  const oneAgain = await deploy(registry, 'hello', 'one')
  t.equal(oneAgain.id, one.id)
  t.ok(oneAgain.createdAt > two.createdAt)
  t.same(registry.history('hello'), [oneAgain, two])
})

t.test('the last ten revisions are kept, and the files of older ones are deleted', async (t) => {
  const folder = t.testdir()
  const registry = open(folder)
  t.teardown(() => registry.close())
  await deploy(registry, 'other', 'version 1')
  for (let version = 0; version < 13; version += 1) await deploy(registry, 'hello', `version ${version}`)
  const sources = await Promise.all(registry.history('hello').map(async (revision) => (await registry.code(revision)).source))
  t.same(
    sources,
    ['12', '11', '10', '9', '8', '7', '6', '5', '4', '3'].map((version) => `version ${version}`),
  )
  t.equal(bundlesIn(folder).length, 11, 'ten, and the one that another function shares')
  t.equal((await registry.code(registry.route('other'))).source, 'version 1')
})

t.test('publishing does not delete files that a deploy at work has written', async (t) => {
  const registry = open(t.testdir(), { historyLimit: 1 })
  t.teardown(() => registry.close())
  await deploy(registry, 'hello', 'one')
  const staged = await registry.stage(stageInput('other', 'one'))
  await deploy(registry, 'hello', 'two')
  const published = await registry.publish(staged, { form: 'fetch' })
  t.equal((await registry.code(published)).source, 'one')
})

t.test('many deploys at once leave one live revision, whole and readable', async (t) => {
  const registry = open(t.testdir(), { historyLimit: 2 })
  t.teardown(() => registry.close())
  const codes = Array.from({ length: 30 }, (_, index) => `version ${index % 5}`)
  await Promise.all(codes.map((code) => deploy(registry, 'hello', code)))
  t.equal(registry.history('hello').length, 2)
  t.same(registry.history('hello')[0], registry.route('hello'))
  t.match((await registry.code(registry.route('hello'))).source, /^version \d$/)
})

t.test('removing a function forgets its revisions and their files', async (t) => {
  const folder = t.testdir()
  const registry = open(folder)
  t.teardown(() => registry.close())
  const revision = await deploy(registry, 'hello', 'one')
  await deploy(registry, 'hello', 'two')
  registry.remove('hello')
  t.same(registry.history('hello'), [])
  t.same(readdirSync(join(folder, 'bundles')), [])
  await t.rejects(registry.sourceMap(revision), { code: 'not-found' })
})

t.test('a code cache belongs to one revision: no other owner, function or revision of the same code gets it', async (t) => {
  const folder = t.testdir()
  const registry = open(folder)
  t.teardown(() => registry.close())
  const stage = (functionName: string, owner: string, env = {}) => {
    const input = stageInput(functionName, 'one')
    return registry.stage({ ...input, owner, config: { ...input.config, env } })
  }
  const mine = await registry.publish(await stage('mine', 'a'), { form: 'fetch', codeCache: Buffer.from('made by a') })
  const others = [
    await registry.publish(await stage('theirs', 'b'), { form: 'fetch' }),
    await registry.publish(await stage('twin', 'a'), { form: 'fetch' }),
  ]
  for (const other of others) t.same(await registry.code(other), { source: 'one' }, other.functionName)
  t.same((await registry.code(mine)).codeCache, Buffer.from('made by a'))

  const changed = await registry.publish(await stage('mine', 'a', { A: '1' }), { form: 'fetch' })
  t.same(await registry.code(changed), { source: 'one' }, 'the same code with another configuration')
  t.same(
    readdirSync(join(folder, 'bundles')).filter((file) => file.endsWith('.cache')),
    [],
    'only the live revision has one',
  )

  registry.remove('mine')
  const after = await registry.publish(await stage('mine', 'b'), { form: 'fetch' })
  t.same(await registry.code(after), { source: 'one' }, 'the next owner of the name')
})

t.test('a code cache is replaced as long as its revision is live', async (t) => {
  const folder = t.testdir()
  const registry = open(folder)
  t.teardown(() => registry.close())
  const caches = () => readdirSync(join(folder, 'bundles')).filter((file) => file.endsWith('.cache'))
  const revision = await deploy(registry, 'hello', 'one')
  t.ok(await registry.replaceCodeCache(revision, Buffer.from('first')))
  t.ok(await registry.replaceCodeCache(revision, Buffer.from('first')))
  t.ok(await registry.replaceCodeCache(revision, Buffer.from('second')))
  t.same((await registry.code(revision)).codeCache, Buffer.from('second'))
  t.equal(caches().length, 1)
  await deploy(registry, 'hello', 'two')
  t.notOk(await registry.replaceCodeCache(revision, Buffer.from('late')))
  const late = registry.replaceCodeCache(registry.route('hello'), Buffer.from('late'))
  registry.remove('hello')
  t.notOk(await late)
  t.same(caches(), [])
})

t.test('a code cache belongs to one version of the engine', async (t) => {
  const folder = t.testdir()
  const registry = open(folder)
  const staged = await registry.stage(stageInput('hello', 'one'))
  const revision = await registry.publish(staged, { form: 'fetch', codeCache: Buffer.from('first') })
  await registry.publish(await registry.stage(stageInput('hello', 'one')), { form: 'fetch', codeCache: Buffer.from('second') })
  t.same((await registry.code(revision)).codeCache, Buffer.from('second'))
  t.equal(readdirSync(join(folder, 'bundles')).length, 3, 'the first cache was deleted')
  registry.close()

  const newer = open(folder, { codeCacheKey: 'v8-2 x64' })
  t.teardown(() => newer.close())
  t.same(await newer.code(revision), { source: 'one' })
  t.equal(readdirSync(join(folder, 'bundles')).length, 2)
})
