import { cpSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { openAccess } from '@carpool/access'
import type { Fleet } from '@carpool/fleet'
import { openRegistry } from '@carpool/registry'
import t, { type Test } from 'tap'
import { Deployer, type DeployParts } from '../src/deploy/deployer.ts'

const SHOP = { owner: 'acme', functionName: 'shop' }
const REQUEST = { code: 'code', sourceMap: '{}' }

/** What the hosts are asked for. There are none: every code loads, unless the test says otherwise. */
function start(t: Test, folder = t.testdir()) {
  const disk = { freeBytes: 10_000, totalBytes: 10_000 }
  const registry = openRegistry(folder, { codeCacheKey: 'none', maxBundleBytes: 1_000, diskSpace: () => disk })
  const access = openAccess(folder, { now: () => 0, onProblem: (cause) => t.fail(String(cause)) })
  let isOpen = true
  const close = (): void => {
    if (isOpen) access.close()
    if (isOpen) registry.close()
    isOpen = false
  }
  t.teardown(close)
  const asked: Array<{ readonly kind: string; readonly env: object; readonly secrets?: unknown }> = []
  const hosts = {
    onWarm: (_staged: Parameters<typeof registry.discard>[0]): void => {},
    loads: true,
  }
  const fleet = {
    smokeTest: async (_owner: string, { env }: { env: object }) => {
      asked.push({ kind: 'tried', env })
      const failed = { ok: false, code: 'load-failed', message: `bad ${JSON.stringify(env)}`, stack: '' } as const
      return { codeCache: undefined, result: hosts.loads ? ({ ok: true, form: 'fetch' } as const) : failed }
    },
    warm: async (staged: Parameters<typeof registry.discard>[0], { secrets }: { secrets?: unknown }) => {
      asked.push({ kind: 'warmed', env: staged.env, secrets })
      hosts.onWarm(staged)
    },
    retire: () => {},
  } as unknown as Fleet
  const deployer = new Deployer({ registry, fleet, secrets: access.secrets, staged: new Map() } satisfies DeployParts)
  return { deployer, registry, secrets: access.secrets, asked, hosts, disk, close }
}

t.test('a function is tried out and warmed up with its secrets, and its revision says which', async (t) => {
  const { deployer, registry, asked } = start(t)
  t.equal(await deployer.setSecret(SHOP, 'A', 'first'), undefined)
  t.strictSame(asked, [], 'there is nothing to deploy yet')
  const first = await deployer.deploy('shop', 'acme', { ...REQUEST, env: { B: 'b' } })
  t.match(first, { secretsVersion: 1, env: { B: 'b' } })
  t.strictSame(asked, [
    { kind: 'tried', env: { B: 'b', A: 'first' } },
    { kind: 'warmed', env: { B: 'b' }, secrets: { A: 'first' } },
  ])
  const second = await deployer.setSecret(SHOP, 'A', 'second')
  t.match(second, { secretsVersion: 2, codeHash: first.codeHash, env: { B: 'b' } })
  t.not(second?.id, first.id)
  t.equal(registry.route('shop').id, second?.id)
  t.strictSame(asked.at(-1), { kind: 'warmed', env: { B: 'b' }, secrets: { A: 'second' } })
  const count = asked.length
  t.equal((await deployer.setSecret(SHOP, 'A', 'second'))?.id, second?.id)
  t.equal(asked.length, count, 'what is the same already is not deployed again')
  t.match(await deployer.deleteSecret(SHOP, 'A'), { secretsVersion: 4 })
  t.strictSame(asked.at(-1), { kind: 'warmed', env: { B: 'b' }, secrets: {} })
})

t.test('a secret for which the disk has no room is not set, and can be deleted', async (t) => {
  const { deployer, secrets, disk } = start(t)
  await deployer.deploy('shop', 'acme', REQUEST)
  await deployer.setSecret(SHOP, 'A', 'first')
  disk.freeBytes = 0
  await t.rejects(deployer.setSecret(SHOP, 'A', 'second'), { code: 'saturated' })
  await t.rejects(deployer.setSecret({ ...SHOP, functionName: 'new' }, 'A', 'first'), { code: 'saturated' })
  t.strictSame(secrets.current(SHOP).values, { A: 'first' })
  await deployer.deleteSecret(SHOP, 'A')
  t.strictSame(secrets.current(SHOP).values, {})
})

t.test('a secret with which the function does not load is not set', async (t) => {
  const { deployer, registry, secrets, hosts } = start(t)
  const live = await deployer.deploy('shop', 'acme', REQUEST)
  hosts.loads = false
  await t.rejects(deployer.setSecret(SHOP, 'A', 'a bad value'), { code: 'load-failed', message: 'bad {"A":"[secret A]"}' })
  t.equal(registry.route('shop').id, live.id)
  t.strictSame(secrets.current(SHOP).values, {})
})

t.test('a secret is taken back if its revision cannot be published in the end', async (t) => {
  const { deployer, registry, secrets, hosts } = start(t)
  await deployer.setSecret(SHOP, 'A', 'first')
  const live = await deployer.deploy('shop', 'acme', REQUEST)
  hosts.onWarm = (staged) => registry.discard(staged)
  await t.rejects(deployer.setSecret(SHOP, 'A', 'second'), { code: 'internal' })
  await t.rejects(deployer.setSecret(SHOP, 'B', 'second'), { code: 'internal' })
  t.equal(registry.route('shop').id, live.id)
  t.strictSame(secrets.current(SHOP).values, { A: 'first' })
  t.strictSame(secrets.of(live), { A: 'first' })
})

t.test('a secret of a server that was killed before it published the revision is in force, and set again with one', async (t) => {
  const folder = t.testdir()
  const before = start(t, folder)
  const live = await before.deployer.deploy('shop', 'acme', REQUEST)
  before.secrets.commit(before.secrets.setting(SHOP, 'A', 'first'))
  before.close()
  const { deployer, registry, secrets } = start(t, folder)
  t.strictSame(secrets.of(registry.route('shop')), { A: 'first' })
  const set = await deployer.setSecret(SHOP, 'A', 'first')
  t.not(set?.id, live.id)
  t.equal((await deployer.setSecret(SHOP, 'A', 'first'))?.id, set?.id)
  t.strictSame(secrets.of(registry.route('shop')), { A: 'first' })
})

t.test('a function whose secrets are lost is not deployed without them, and serves again when they are set again', async (t) => {
  const folder = t.testdir()
  const before = start(t, folder)
  await before.deployer.setSecret(SHOP, 'A', 'older')
  await before.deployer.deploy('shop', 'acme', REQUEST)
  before.close()
  cpSync(join(folder, 'access.sqlite'), join(folder, 'copy'))
  const again = start(t, folder)
  await again.deployer.setSecret(SHOP, 'A', 'newer')
  again.close()
  renameSync(join(folder, 'copy'), join(folder, 'access.sqlite'))
  const { deployer, registry, secrets } = start(t, folder)
  await t.rejects(deployer.deploy('shop', 'acme', { ...REQUEST, code: 'new code' }), {
    code: 'data-unusable',
    message: /are lost/,
  })
  await t.rejects(deployer.deleteSecret(SHOP, 'A'), { code: 'data-unusable' })
  await deployer.setSecret(SHOP, 'A', 'older')
  t.strictSame(secrets.of(registry.route('shop')), { A: 'older' })
  await deployer.deploy('shop', 'acme', { ...REQUEST, code: 'new code' })
})

t.test(
  'a name that is taken has neither deploys nor secrets of others; one that is free may have secrets of several',
  async (t) => {
    const { deployer, registry, secrets } = start(t)
    const ofBeta = { ...SHOP, owner: 'beta' }
    await deployer.setSecret(SHOP, 'A', 'of acme')
    await deployer.setSecret(ofBeta, 'A', 'of beta')
    t.notHas(await deployer.deploy('shop', 'beta', REQUEST), { secretsVersion: 1 })
    t.strictSame(secrets.of(registry.route('shop')), { A: 'of beta' })
    await t.rejects(deployer.deploy('shop', 'acme', REQUEST), { code: 'name-taken' })
    await t.rejects(deployer.setSecret(SHOP, 'A', 'v'), { code: 'name-taken' })
    await t.rejects(deployer.remove('shop', 'acme'), { code: 'not-found' })
    await deployer.deleteSecret(SHOP, 'A')
    t.strictSame(secrets.functionsOf('acme'), [], 'nothing is left of what cannot be used')
    t.strictSame(secrets.of(registry.route('shop')), { A: 'of beta' })
    await deployer.remove('shop', 'beta')
    t.strictSame(secrets.functionsOf('beta'), [])
  },
)

t.test('secrets of functions that are not deployed are limited', async (t) => {
  const { deployer } = start(t)
  await deployer.deploy('deployed', 'acme', REQUEST)
  await deployer.setSecret({ owner: 'acme', functionName: 'deployed' }, 'A', 'v')
  for (let i = 0; i < 100; i++) await deployer.setSecret({ owner: 'acme', functionName: `f${i}` }, 'A', 'v')
  const oneMore = { owner: 'acme', functionName: 'one-more' }
  await t.rejects(deployer.setSecret(oneMore, 'A', 'v'), { code: 'bad-request', message: /acme has secrets of 100 functions/ })
  await deployer.setSecret({ owner: 'acme', functionName: 'f1' }, 'B', 'v')
  await deployer.setSecret({ owner: 'acme', functionName: 'deployed' }, 'B', 'v')
  await deployer.setSecret({ owner: 'beta', functionName: 'one-more' }, 'A', 'v')
  await deployer.deploy('f1', 'acme', REQUEST)
  await deployer.setSecret(oneMore, 'A', 'v')
})
