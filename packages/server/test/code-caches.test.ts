import { openRegistry } from '@carpool/registry'
import { resolveLimits, type Revision } from '@carpool/core'
import t, { type Test } from 'tap'
import { CodeCaches } from '../src/deploy/code-caches.ts'

/** Makes `cache of <function>`, in host processes that there are not. */
async function start(t: Test) {
  const registry = openRegistry(t.testdir(), { codeCacheKey: 'none', maxBundleBytes: 1_000 })
  t.teardown(() => registry.close())
  const publish = async (functionName: string, owner = 'o', code = 'code'): Promise<Revision> => {
    const staged = await registry.stage({
      functionName,
      owner,
      code,
      sourceMap: '{}',
      config: { limits: resolveLimits({}), env: { A: 'a' } },
    })
    return registry.publish(staged, { form: 'fetch', codeCache: Buffer.from('rejected') })
  }
  const warnings: unknown[] = []
  const caches = new CodeCaches({
    registry,
    codeOf: async (revision) => ({ ...(await registry.code(revision)), secrets: { B: 'b' } }),
    log: { info: () => {}, warn: (problem: unknown) => warnings.push(problem) },
  })
  const hosts = {
    made: [] as Array<{ readonly owner: string; readonly env: object; readonly source: string }>,
    used: [] as Array<readonly [revision: string, cache: string]>,
    isOverloaded: false,
    cacheOf: async (functionName: string): Promise<Uint8Array | undefined> => Buffer.from(`cache of ${functionName}`),
  }
  caches.useFleet({
    get isOverloaded() {
      return hosts.isOverloaded
    },
    smokeTest: async (owner, { functionName, env }, source) => {
      hosts.made.push({ owner, env, source })
      return { result: { ok: true, form: 'fetch' }, codeCache: await hosts.cacheOf(functionName) }
    },
    useCodeCache: (revision, cache) => hosts.used.push([revision, Buffer.from(cache).toString()]),
  })
  const cacheOf = async (revision: Revision): Promise<string> => String((await registry.code(revision)).codeCache)
  return { registry, publish, caches, hosts, warnings, cacheOf }
}

t.test('a code cache that V8 rejects is replaced, on the disk and in the hosts', async (t) => {
  const { publish, caches, hosts, cacheOf } = await start(t)
  const [revision, other] = [await publish('shop'), await publish('other', 'p')]
  caches.missing(revision)
  await caches.settled
  t.strictSame(hosts.made, [{ owner: 'o', env: { A: 'a', B: 'b' }, source: 'code' }], 'with its secrets')
  t.equal(await cacheOf(revision), 'cache of shop')
  t.strictSame(hosts.used, [[revision.id, 'cache of shop']])
  t.equal(await cacheOf(other), 'rejected', 'the same code of somebody else has its own')
})

t.test('it is made once, whatever hosts say, and again for the next revision', async (t) => {
  const { publish, caches, hosts } = await start(t)
  const revision = await publish('shop')
  hosts.cacheOf = async () => undefined
  for (let time = 0; time < 3; time++) {
    caches.missing(revision)
    await caches.settled
  }
  t.equal(hosts.made.length, 1)
  t.strictSame(hosts.used, [])
  const next = await publish('shop', 'o', 'next')
  caches.missing(revision)
  caches.missing(next)
  await caches.settled
  t.strictSame(
    hosts.made.map(({ source }) => source),
    ['code', 'next'],
  )
})

t.test('it is not made while the hosts are overloaded, nor for a function that is disabled', async (t) => {
  const { registry, publish, caches, hosts } = await start(t)
  const revision = await publish('shop')
  hosts.isOverloaded = true
  caches.missing(revision)
  await caches.settled
  t.equal(hosts.made.length, 0)
  hosts.isOverloaded = false
  registry.disable('shop', { reason: 'of the test' })
  caches.missing(revision)
  await caches.settled
  t.equal(hosts.made.length, 0)
  registry.enable('shop')
  caches.missing(revision)
  await caches.settled
  t.equal(hosts.made.length, 1)
})

t.test('one is made after the other, and one that fails or comes too late stops none', async (t) => {
  const { publish, caches, hosts, warnings, cacheOf } = await start(t)
  const [fails, late, fine] = [await publish('fails'), await publish('late'), await publish('fine')]
  let underWay = 0
  hosts.cacheOf = async (functionName) => {
    t.equal(++underWay, 1)
    if (functionName === 'late') await publish('late', 'o', 'newer')
    underWay--
    if (functionName === 'fails') throw new Error('of the test')
    return Buffer.from('made')
  }
  for (const revision of [fails, late, fine]) caches.missing(revision)
  await caches.settled
  t.match(warnings, [{ functionName: 'fails' }])
  t.strictSame(hosts.used, [[fine.id, 'made']])
  t.equal(await cacheOf(fine), 'made')
})
