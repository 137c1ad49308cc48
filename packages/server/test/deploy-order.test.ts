import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openAccess } from '@carpool/access'
import type { Fleet } from '@carpool/fleet'
import { openRegistry } from '@carpool/registry'
import t, { type Test } from 'tap'
import { deployTurns } from '../src/deploy/deploy-turns.ts'
import { Deployer } from '../src/deploy/deployer.ts'

const SHOP = { owner: 'acme', functionName: 'shop' }
const REQUEST = { code: 'code', sourceMap: '{}' }

/** A deployer whose hosts load every code; what it does is noted. */
function start(t: Test, folder: string = t.testdir()) {
  const registry = openRegistry(folder, { codeCacheKey: 'none', maxBundleBytes: 1_000 })
  const access = openAccess(folder, { onProblem: (cause) => t.fail(String(cause)) })
  const close = (): void => {
    access.close()
    registry.close()
  }
  const noted: string[] = []
  const hosts = { smokeTest: async (): Promise<void> => {} }
  const fleet = {
    smokeTest: async () => {
      await hosts.smokeTest()
      return { codeCache: undefined, result: { ok: true, form: 'fetch' } }
    },
    warm: async () => void noted.push('warmed'),
    retire: () => {},
    disable: () => void noted.push('disabled'),
  } as unknown as Fleet
  const eraseLog = async (name: string): Promise<void> =>
    void noted.push(`log of ${name} erased, owner ${registry.ownerOf(name)}`)
  const deployer = new Deployer({ registry, fleet, secrets: access.secrets, staged: new Map(), eraseLog })
  return { deployer, registry, secrets: access.secrets, noted, hosts, close }
}

t.test('a function that is disabled is deployed without being warmed up', async (t) => {
  const { deployer, registry, noted, close } = start(t)
  t.teardown(close)
  await deployer.deploy('shop', 'acme', REQUEST)
  registry.disable('shop', { reason: 'it mines coins' })
  const before = noted.length
  const { id } = await deployer.deploy('shop', 'acme', { ...REQUEST, code: 'other' })
  t.equal(registry.route('shop').id, id)
  t.equal(noted.length, before)
  await deployer.remove('shop', 'acme')
  await deployer.deploy('shop', 'beta', REQUEST)
  t.equal(noted.at(-2), 'warmed', 'of another owner it is another function')
})

t.test('what is left in the log of a name is erased before the name has an owner again', async (t) => {
  const { deployer, noted, close } = start(t)
  t.teardown(close)
  await deployer.deploy('shop', 'acme', REQUEST)
  await deployer.deploy('shop', 'acme', { ...REQUEST, code: 'other' })
  const erased = 'log of shop erased, owner undefined'
  t.strictSame(noted, ['warmed', erased, 'warmed'])
  await deployer.remove('shop', 'acme')
  await deployer.deploy('shop', 'beta', REQUEST)
  t.strictSame(noted.slice(3), ['warmed', erased])
})

t.test('the log stays of a function that is damaged', async (t) => {
  const folder = t.testdir()
  const before = start(t, folder)
  await before.deployer.deploy('shop', 'acme', REQUEST)
  before.close()
  const file = readdirSync(join(folder, 'bundles')).find((name) => name.endsWith('.js')) ?? ''
  writeFileSync(join(folder, 'bundles', file), '')
  const { deployer, noted, close } = start(t, folder)
  t.teardown(close)
  await deployer.deploy('shop', 'acme', REQUEST)
  t.strictSame(noted, ['warmed'])
})

/** What SQLite throws then. */
const full = (): never => {
  throw Object.assign(new Error('database or disk is full'), { errcode: 13 })
}

t.test('a function that cannot be removed keeps its secrets', async (t) => {
  const { deployer, registry, secrets, close } = start(t)
  t.teardown(close)
  await deployer.setSecret(SHOP, 'A', 'v')
  await deployer.deploy('shop', 'acme', REQUEST)
  const remove = registry.remove.bind(registry)
  registry.remove = full
  await t.rejects(deployer.remove('shop', 'acme'), { message: /full/ })
  t.strictSame(secrets.current(SHOP).values, { A: 'v' })
  registry.remove = remove
  await deployer.remove('shop', 'acme')
  t.strictSame(secrets.functionsOf('acme'), [])
})

t.test('secrets that could not be deleted with their function are told, and go when it is deleted again', async (t) => {
  const { deployer, registry, secrets, close } = start(t)
  t.teardown(close)
  await deployer.setSecret(SHOP, 'A', 'v')
  await deployer.deploy('shop', 'acme', REQUEST)
  const forget = secrets.forget.bind(secrets)
  secrets.forget = full
  const told = { code: 'data-unusable', message: /^shop is deleted, but its secrets could not be/ }
  await t.rejects(deployer.remove('shop', 'acme'), told)
  t.equal(registry.ownerOf('shop'), undefined)
  await t.rejects(deployer.remove('shop', 'acme'), told)
  secrets.forget = forget
  await deployer.remove('shop', 'acme')
  t.strictSame(secrets.functionsOf('acme'), [])
  await t.rejects(deployer.remove('shop', 'acme'), { code: 'not-found' })
})

t.test('a function that is disabled on a full disk is said to be disabled', async (t) => {
  const { deployer, registry, noted, close } = start(t)
  t.teardown(close)
  await deployer.deploy('shop', 'acme', REQUEST)
  registry.disable = full
  t.throws(() => deployer.disable('shop', 'it mines coins'), {
    code: 'data-unusable',
    message: /^shop is disabled, but only until the server ends/,
  })
  t.equal(noted.at(-1), 'disabled')
})

t.test('a removal does not wait for deploys that wait, and a stranger does not get into the queue of a name', async (t) => {
  const { deployer, registry, hosts, close } = start(t)
  t.teardown(close)
  await deployer.deploy('shop', 'acme', REQUEST)
  const released = Promise.withResolvers<void>()
  hosts.smokeTest = () => released.promise
  const deploys = Array.from({ length: 21 }, (_, index) => deployer.deploy('shop', 'acme', { ...REQUEST, code: `code ${index}` }))
  await t.rejects(deployer.deploy('shop', 'acme', REQUEST), { code: 'saturated' })
  await t.rejects(deployer.deploy('shop', 'beta', REQUEST), { code: 'name-taken' }, 'at once')
  const owners: Array<string | undefined> = []
  registry.onRouteChange(({ current }) => owners.push(current?.owner))
  const removal = deployer.remove('shop', 'acme')
  released.resolve()
  await removal
  t.strictSame(owners, ['acme', undefined], 'after the one at work')
  await Promise.all(deploys)
})

t.test('changes of a name take turns in their order; an urgent one waits for the one at work alone', async (t) => {
  const inTurn = deployTurns()
  const done: string[] = []
  const first = Promise.withResolvers<void>()
  const work = (name: string) => async (): Promise<void> => void done.push(name)
  const all = [
    inTurn(SHOP, () => first.promise.then(work('first'))),
    inTurn(SHOP, work('second')),
    inTurn(SHOP, () => Promise.reject(new Error('third'))).catch(work('third')),
    inTurn(SHOP, work('fourth')),
    inTurn({ ...SHOP, isUrgent: true }, work('urgent')),
  ]
  await inTurn({ ...SHOP, functionName: 'other' }, work('other'))
  first.resolve()
  await Promise.all(all)
  t.strictSame(done.toSorted(), ['first', 'fourth', 'other', 'second', 'third', 'urgent'])
  t.strictSame(
    done.filter((name) => name !== 'third'),
    ['other', 'first', 'urgent', 'second', 'fourth'],
  )
  await inTurn(SHOP, work('again'))
  t.equal(done.at(-1), 'again')
})

t.test('of one owner not many wait; others and what is urgent are not refused', async (t) => {
  const inTurn = deployTurns(2)
  const first = Promise.withResolvers<void>()
  const noWork = async (): Promise<void> => {}
  const all = [
    inTurn(SHOP, () => first.promise),
    inTurn(SHOP, noWork),
    inTurn({ ...SHOP, functionName: 'other' }, () => first.promise),
  ]
  const refused = { code: 'saturated', message: '2 deploys of acme wait, which is the limit; try again when some are done.' }
  await t.rejects(inTurn(SHOP, noWork), refused)
  await t.rejects(inTurn({ ...SHOP, functionName: 'third' }, noWork), refused)
  all.push(inTurn({ ...SHOP, owner: 'beta' }, noWork), inTurn({ ...SHOP, isUrgent: true }, noWork))
  first.resolve()
  await Promise.all(all)
  await inTurn(SHOP, noWork)
})
