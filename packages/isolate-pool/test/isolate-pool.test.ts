import t from 'tap'
import { chooseEvicted, IsolatePool, type Pooled } from '../src/index.ts'

class Fake implements Pooled {
  readonly revision: string
  disposed = false
  hasBackgroundWork = false
  constructor(revision: string) {
    this.revision = revision
  }
  dispose(): void {
    this.disposed = true
  }
}

function poolOf(maxIsolates: number): { pool: IsolatePool<Fake>; made: Fake[] } {
  const made: Fake[] = []
  const pool = new IsolatePool<Fake>({
    load: async (revision) => {
      const fake = new Fake(revision)
      made.push(fake)
      return fake
    },
    maxIsolates,
    lingerMs: 60_000,
  })
  return { pool, made }
}

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

t.test('a failed load is told to all who wait, and tried again for the next', async (t) => {
  let attempts = 0
  const pool = new IsolatePool<Fake>({
    load: async (revision) => {
      attempts++
      if (attempts === 1) throw new Error('no luck')
      return new Fake(revision)
    },
    maxIsolates: 1,
    lingerMs: 0,
  })
  const failed = await Promise.allSettled([pool.acquire('r'), pool.acquire('r')])
  t.ok(failed.every(({ status }) => status === 'rejected'))
  t.ok(await pool.acquire('r'))
  t.equal(attempts, 2)
})

t.test('nothing is evicted while there is room, or while all are busy', async (t) => {
  const idle = { key: 'idle', leases: 0, hasBackgroundWork: false }
  const busy = { key: 'busy', leases: 1, hasBackgroundWork: false }
  const waiting = { key: 'waiting', leases: 0, hasBackgroundWork: true }
  t.equal(chooseEvicted([idle], 1, 1), undefined)
  t.equal(chooseEvicted([busy], 2, 1), undefined)
  t.equal(chooseEvicted([busy, idle], 2, 1), 'idle')
  t.equal(chooseEvicted([waiting, idle], 2, 1), 'idle', 'work in the background is ended last')
  t.equal(chooseEvicted([waiting, busy], 2, 1), 'waiting')
})
