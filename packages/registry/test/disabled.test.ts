import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { RouteChange } from '../src/index.ts'
import { openDatabase } from '../src/database.ts'
import { DisabledFunctions } from '../src/disabled-functions.ts'
import { deploy, open, stageInput } from './fixtures/open.ts'

const REASON = 'its code took down 4 host processes'
const REFUSAL = {
  code: 'function-disabled',
  message: `hello is disabled since 1970-01-01T00:00:00.000Z because ${REASON}. An operator can enable it with "carpool enable hello".`,
}
const now = (): Date => new Date(0)

t.test('calls of a disabled function are refused with the reason, also after a restart, until it is enabled', async (t) => {
  const folder = t.testdir()
  const before = open(folder, { now })
  const revision = await deploy(before, 'hello', 'one')
  await deploy(before, 'other', 'one')
  before.disable('hello', { reason: REASON })
  t.throws(() => before.checkEnabled('hello'), REFUSAL)
  t.equal(before.route('other').functionName, 'other')
  before.close()
  const registry = open(folder, { now })
  t.teardown(() => registry.close())
  t.throws(() => registry.checkEnabled('hello'), REFUSAL)
  t.strictSame(registry.disabledInfo('hello'), { owner: 'ann', reason: REASON, at: '1970-01-01T00:00:00.000Z' })
  t.strictSame(registry.route('hello'), revision, 'it is there all the same')
  t.equal(registry.list().length, 2)
  registry.enable('hello')
  t.strictSame(registry.route('hello'), revision)
  t.equal(registry.disabledInfo('hello'), undefined)
  registry.enable('hello')
})

t.test('neither a new deploy nor deleting it enables a function, but with another owner it is another one', async (t) => {
  const registry = open(t.testdir(), { now })
  t.teardown(() => registry.close())
  await deploy(registry, 'hello', 'one')
  registry.disable('hello', { reason: REASON })
  await deploy(registry, 'hello', 'two')
  t.throws(() => registry.checkEnabled('hello'), REFUSAL)
  registry.remove('hello')
  t.throws(() => registry.route('hello'), { code: 'not-found' })
  await deploy(registry, 'hello', 'two')
  t.throws(() => registry.checkEnabled('hello'), REFUSAL)
  registry.remove('hello')
  await registry.publish(await registry.stage({ ...stageInput('hello', 'two'), owner: 'bob' }), { form: 'fetch' })
  t.equal(registry.route('hello').owner, 'bob')
})

t.test('on a full disk a function is disabled all the same, and written when there is room', async (t) => {
  const path = join(t.testdir(), 'registry.sqlite')
  const database = openDatabase(path)
  t.teardown(() => database.close())
  const disabled = new DisabledFunctions(database)
  const info = { owner: 'ann', reason: REASON.padEnd(100_000), at: '1970-01-01T00:00:00.000Z' }
  const pages = Number(database.prepare('PRAGMA page_count').get()?.['page_count'])
  database.exec(`PRAGMA max_page_count = ${pages}`)
  t.throws(() => disabled.add('hello', info), { message: /full/ })
  t.strictSame(disabled.get('hello'), info)
  database.exec('PRAGMA max_page_count = 1000000')
  disabled.add('hello', { ...info, reason: 'another' })
  t.strictSame(new DisabledFunctions(database).get('hello'), info)
})

t.test('a damaged function that is removed is told, so that what it left behind can go', async (t) => {
  const folder = t.testdir()
  const before = open(folder)
  const { id } = await deploy(before, 'hello', 'one')
  before.close()
  const file = readdirSync(join(folder, 'bundles')).find((name) => name.endsWith('.js')) ?? ''
  writeFileSync(join(folder, 'bundles', file), '')
  const registry = open(folder)
  t.teardown(() => registry.close())
  const changes: RouteChange[] = []
  registry.onRouteChange((change) => changes.push(change))
  registry.remove('hello')
  t.match(changes, [{ functionName: 'hello', previous: { id } }])
  t.notHas(changes[0], { current: Object })
})

t.test('the same code of two owners has two ids', async (t) => {
  const registry = open(t.testdir())
  t.teardown(() => registry.close())
  const input = stageInput('hello', 'one')
  const [ofAnn, again, ofBob] = await Promise.all([
    registry.stage(input),
    registry.stage(input),
    registry.stage({ ...input, owner: 'bob' }),
  ])
  t.equal(again.id, ofAnn.id)
  t.not(ofBob.id, ofAnn.id)
})

t.test('the first reason stays', async (t) => {
  const registry = open(t.testdir(), { now })
  t.teardown(() => registry.close())
  await deploy(registry, 'hello', 'one')
  registry.disable('hello', { reason: REASON })
  registry.disable('hello', { reason: 'another' })
  t.throws(() => registry.checkEnabled('hello'), REFUSAL)
})

t.test('what is not there can be neither disabled nor enabled; what was deleted can be enabled', async (t) => {
  const registry = open(t.testdir(), { now })
  t.teardown(() => registry.close())
  t.throws(() => registry.disable('hello', { reason: REASON }), { code: 'not-found' })
  t.throws(() => registry.enable('hello'), { code: 'not-found' })
  await deploy(registry, 'hello', 'one')
  registry.disable('hello', { reason: REASON })
  registry.remove('hello')
  registry.enable('hello')
  await deploy(registry, 'hello', 'one')
  t.equal(registry.route('hello').functionName, 'hello')
})

t.test('a function has its owner also while its bundle is damaged', async (t) => {
  const folder = t.testdir()
  const before = open(folder)
  await deploy(before, 'hello', 'one')
  before.close()
  const file = readdirSync(join(folder, 'bundles')).find((name) => name.endsWith('.js')) ?? ''
  writeFileSync(join(folder, 'bundles', file), '')
  const registry = open(folder)
  t.teardown(() => registry.close())
  t.equal(registry.ownerOf('hello'), 'ann')
  t.equal(registry.ownerOf('other'), undefined)
  t.throws(() => registry.route('hello'), { code: 'data-unusable' })
})

t.test('the id depends on the version of the secrets, and one without any is of version 0', async (t) => {
  const folder = t.testdir()
  const registry = open(folder)
  const input = stageInput('hello', 'one')
  const stage = (secretsVersion?: number) =>
    registry.stage({ ...input, config: { ...input.config, ...(secretsVersion !== undefined && { secretsVersion }) } })
  const [none, zero, one, two] = await Promise.all([stage(), stage(0), stage(1), stage(2)])
  t.equal(zero.id, none.id)
  t.equal(new Set([none.id, one.id, two.id]).size, 3)
  await registry.publish(two, { form: 'fetch' })
  registry.close()
  const reopened = open(folder)
  t.teardown(() => reopened.close())
  t.match(reopened.route('hello'), { id: two.id, secretsVersion: 2 })
})
