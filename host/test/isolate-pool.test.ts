import fc from 'fast-check'
import t from 'tap'
import { chooseEvicted, IsolatePool, MIN_ISOLATE_BYTES, type EvictionCandidate } from '../src/isolates/isolate-pool.ts'
import { FakeIsolate, MB, poolOf } from './support/fake-pool.ts'

t.test('callers who come while an isolate loads share it', async (t) => {
  const { pool, made } = poolOf(10)
  const leases = await Promise.all([pool.acquire('r'), pool.acquire('r'), pool.acquire('r')])
  t.equal(made.length, 1)
  t.ok(leases.every(({ isolate }) => isolate === made[0]))
  t.equal(pool.acquireWarm('r')?.isolate, made[0])
  t.equal(pool.acquireWarm('other'), undefined)
})

t.test('the least recently used idle isolate leaves; a busy one never does', async (t) => {
  const { pool, made } = poolOf(2)
  const busy = await pool.acquire('busy')
  const idle = await pool.acquire('idle')
  idle.release()
  const recent = await pool.acquire('recent')
  recent.release()
  t.strictSame(
    made.map(({ revision, disposed }) => [revision, disposed]),
    [
      ['busy', false],
      ['idle', true],
      ['recent', false],
    ],
  )
  busy.release()
  t.equal(pool.size, 2)
})

t.test('a retired revision ends with its last lease, and a new lease gets a new isolate', async (t) => {
  const { pool, made } = poolOf(10)
  const lease = await pool.acquire('r')
  pool.retire('r')
  t.notOk(lease.isolate.disposed)
  const next = await pool.acquire('r')
  t.not(next.isolate, lease.isolate)
  lease.release()
  lease.release()
  t.ok(made[0]?.disposed)
  t.notOk(made[1]?.disposed)
})

t.test('an isolate that is set aside ends with its last lease while the revision goes on in a new one', async (t) => {
  const { pool, made } = poolOf(10)
  const lease = await pool.acquire('r')
  t.ok(pool.setAside('r', lease.isolate))
  t.equal(pool.acquireWarm('r'), undefined, 'nobody new gets into it')
  const next = await pool.acquire('r')
  t.not(next.isolate, lease.isolate)
  t.notOk(lease.isolate.disposed)
  t.notOk(pool.setAside('r', lease.isolate), 'it is not the isolate of its revision any more')
  t.notOk(pool.setAside('r', next.isolate), 'one after the other')
  lease.release()
  t.ok(made[0]?.disposed)
  t.ok(pool.setAside('r', next.isolate))
  next.release()
  t.ok(made[1]?.disposed)
})

t.test('a retired isolate with background work is not ended at once', async (t) => {
  const { pool } = poolOf(10)
  const lease = await pool.acquire('r')
  lease.isolate.hasBackgroundWork = true
  pool.retire('r')
  lease.release()
  t.notOk(lease.isolate.disposed)
})

t.test('an isolate that is gone is replaced', async (t) => {
  const { pool } = poolOf(10)
  const lease = await pool.acquire('r')
  lease.isolate.disposed = true
  lease.release()
  const next = await pool.acquire('r')
  t.notOk(next.isolate.disposed)
})

t.test('a failed load fails for all who wait, and is tried again for the next', async (t) => {
  let attempts = 0
  const pool = new IsolatePool<FakeIsolate>({
    load: async (revision) => {
      attempts++
      if (attempts === 1) throw new Error('no luck')
      return new FakeIsolate(revision)
    },
    maxIsolates: 1,
    lingerMs: 0,
  })
  const failed = await Promise.allSettled([pool.acquire('r'), pool.acquire('r')])
  t.ok(failed.every(({ status }) => status === 'rejected'))
  t.ok(await pool.acquire('r'))
  t.equal(attempts, 2)
})

t.test('relief ends the least recently used first, and no more than it takes', async (t) => {
  const { pool, made } = poolOf(10)
  for (const revision of ['a', 'b', 'c', 'd']) (await pool.acquire(revision)).release()
  pool.acquireWarm('a')?.release()
  t.strictSame(pool.relieve(3 * MB), { evicted: 2, bytes: 4 * MB })
  t.strictSame(goneOf(made), ['b', 'c'])
  t.strictSame(pool.relieve(0), { evicted: 0, bytes: 0 })
  t.equal(pool.size, 2)
})

t.test('relief passes over isolates in use, and ends those with background work last, retired ones before others', async (t) => {
  const { pool, made } = poolOf(10)
  const busy = await pool.acquire('busy')
  for (const revision of ['waiting', 'retired']) {
    const lease = await pool.acquire(revision)
    lease.isolate.hasBackgroundWork = true
    lease.release()
  }
  for (const revision of ['idle', 'loading']) (await pool.acquire(revision)).release()
  pool.retire('retired')
  await Promise.resolve()
  t.strictSame(pool.relieve(2 * MB), { evicted: 1, bytes: 2 * MB })
  t.strictSame(goneOf(made), ['idle'])
  pool.relieve(4 * MB)
  t.strictSame(goneOf(made), ['retired', 'idle', 'loading'])
  t.strictSame(pool.relieve(100 * MB), { evicted: 1, bytes: 2 * MB })
  t.strictSame(goneOf(made), ['waiting', 'retired', 'idle', 'loading'])
  t.notOk(busy.isolate.disposed)
})

t.test('a pinned revision leaves neither by count nor by pressure, until it is retired', async (t) => {
  const { pool, made } = poolOf(1)
  pool.pin('early')
  t.strictSame(pool.coldPinned, ['early'])
  ;(await pool.acquire('early')).release()
  const late = await pool.acquire('late')
  pool.pin('late')
  late.release()
  for (const revision of ['x', 'y']) (await pool.acquire(revision)).release()
  pool.relieve(100 * MB)
  t.strictSame(goneOf(made), ['x', 'y'])
  t.strictSame(pool.coldPinned, [])
  pool.retire('early')
  await Promise.resolve()
  t.strictSame(goneOf(made), ['early', 'x', 'y'])
  ;(await pool.acquire('early')).release()
  t.strictSame(goneOf(made), ['early', 'x', 'y', 'early'], 'it was pinned until then only')
})

t.test('a pinned revision that lost its isolate is listed, until it loads again', async (t) => {
  const { pool } = poolOf(10)
  pool.pin('r')
  const lease = await pool.acquire('r')
  lease.isolate.dispose()
  t.strictSame(pool.coldPinned, ['r'])
  lease.release()
  t.strictSame(pool.coldPinned, ['r'])
  const again = pool.acquire('r')
  t.strictSame(pool.coldPinned, [])
  t.notOk((await again).isolate.disposed)
})

t.test('an isolate whose callers have ended stays retired and counted for as long as it works in the background', async (t) => {
  const { pool } = poolOf(10)
  const lease = await pool.acquire('r')
  lease.isolate.hasBackgroundWork = true
  pool.retire('r')
  t.equal(pool.evictableBytes, 0, 'it is in use')
  lease.release()
  t.notOk(lease.isolate.disposed)
  t.equal(pool.evictableBytes, 2 * MB)
  t.equal(pool.size, 0)
  pool.relieve(1)
  t.ok(lease.isolate.disposed)
  t.equal(pool.evictableBytes, 0)
})

t.test('what may leave is counted: none in use, pinned or gone, and none that loads', async (t) => {
  const { pool, made } = poolOf(10)
  for (const revision of ['a', 'b', 'pinned', 'gone']) (await pool.acquire(revision)).release()
  pool.pin('pinned')
  made[3]?.dispose()
  const lease = await pool.acquire('b')
  const more = await pool.acquire('b')
  const loading = pool.acquire('new')
  t.equal(pool.size, 5)
  t.equal(pool.evictableBytes, 2 * MB)
  more.release()
  t.equal(pool.evictableBytes, 2 * MB, 'another lease holds it')
  lease.release()
  ;(await loading).release()
  t.equal(pool.evictableBytes, 6 * MB)
})

t.test('an isolate that was lost gives nothing up', async (t) => {
  const { pool, made } = poolOf(10)
  for (const revision of ['gone', 'a', 'b']) (await pool.acquire(revision)).release()
  made[0]?.dispose()
  t.strictSame(pool.relieve(2 * MB), { evicted: 1, bytes: 2 * MB })
  t.equal(pool.size, 1)
  const lease = await pool.acquire('b')
  lease.isolate.dispose()
  lease.release()
  t.equal(pool.size, 0, 'it leaves with its last lease')
})

t.test('an isolate whose memory is not known counts as a small one', async (t) => {
  const { pool, made } = poolOf(10)
  for (const revision of ['a', 'b']) (await pool.acquire(revision)).release()
  for (const fake of made) fake.heapBytes = 0
  t.equal(pool.evictableBytes, 2 * MIN_ISOLATE_BYTES)
  t.strictSame(pool.relieve(1), { evicted: 1, bytes: MIN_ISOLATE_BYTES })
})

t.test('when many isolates come to rest at once, the pool falls to its limit', async (t) => {
  const { pool } = poolOf(2)
  const leases = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((revision) => pool.acquire(revision)))
  t.equal(pool.size, 5)
  for (const lease of leases) lease.release()
  t.equal(pool.size, 2)
})

function goneOf(made: readonly FakeIsolate[]): string[] {
  return made.filter(({ disposed }) => disposed).map(({ revision }) => revision)
}

const candidates: fc.Arbitrary<EvictionCandidate[]> = fc.array(
  fc.record({
    leases: fc.constantFrom(0, 0, 0, 1, 3),
    isPinned: fc.constantFrom(false, false, true),
    hasBackgroundWork: fc.boolean(),
    heapBytes: fc.nat(100),
  }),
  { maxLength: 30 },
)
const goals = fc.record({ isolates: fc.nat(20), bytes: fc.nat(1000) })

const bytesOf = (chosen: readonly EvictionCandidate[]): number => chosen.reduce((sum, { heapBytes }) => sum + heapBytes, 0)

t.test('one that is in use or pinned never leaves, and none leaves twice', async () => {
  fc.assert(
    fc.property(candidates, goals, (candidates, goal) => {
      const chosen = chooseEvicted(candidates, goal)
      return (
        chosen.every((one) => candidates.includes(one) && one.leases === 0 && !one.isPinned) &&
        new Set(chosen).size === chosen.length
      )
    }),
  )
})

t.test('the goal is reached, by the last that leaves and not before, or all leave that may', async () => {
  fc.assert(
    fc.property(candidates, goals, (candidates, goal) => {
      const chosen = chooseEvicted(candidates, goal)
      const isReachedBy = (some: readonly EvictionCandidate[]): boolean =>
        some.length >= goal.isolates && bytesOf(some) >= goal.bytes
      const mayLeave = candidates.filter(({ leases, isPinned }) => leases === 0 && !isPinned)
      const isLeast = chosen.length === 0 || !isReachedBy(chosen.slice(0, -1))
      return isLeast && (isReachedBy(chosen) || chosen.length === mayLeave.length)
    }),
  )
})

t.test('they leave in order of use, those with background work after all without', async () => {
  fc.assert(
    fc.property(candidates, goals, (candidates, goal) => {
      const mayLeave = candidates.filter(({ leases, isPinned }) => leases === 0 && !isPinned)
      const order = [
        ...mayLeave.filter(({ hasBackgroundWork }) => !hasBackgroundWork),
        ...mayLeave.filter(({ hasBackgroundWork }) => hasBackgroundWork),
      ]
      return chooseEvicted(candidates, goal).every((one, index) => one === order[index])
    }),
  )
})

t.test('without a goal nothing leaves', async (t) => {
  const idle = { leases: 0, isPinned: false, hasBackgroundWork: false, heapBytes: 1 }
  t.strictSame(chooseEvicted([idle], {}), [])
  t.strictSame(chooseEvicted([idle], { isolates: -1, bytes: -1 }), [])
  t.strictSame(chooseEvicted([idle, idle], { isolates: 1 }), [idle])
  t.strictSame(chooseEvicted([], { isolates: 1, bytes: 1 }), [])
})
