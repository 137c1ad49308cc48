import { randomUUID } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { CarpoolError, NO_TOTALS, type InvocationRecord } from '@carpool/core'
import { ask, fileOf, HOUR_MS, open, record, save, START_MS } from './fixtures/records.ts'

t.test('a record is read back as it was written, and as plain columns', async (t) => {
  const folder = t.testdir()
  const { ledger } = await open(folder)
  t.teardown(() => ledger.close())
  const full = record({
    trigger: 'cli',
    start: 'function-cold',
    outcome: 'timeout',
    status: 504,
    host: 3,
    initUs: 2_000,
    initCpuUs: 900,
    egressBytesOut: 5,
    egressBytesIn: 6,
    attempts: 2,
  })
  const refused = record({ outcome: 'refused', error: 'saturated', status: 503, host: 0, wallUs: 0, queueUs: 0 })
  await save(ledger, full, 700)
  await save(ledger, refused, 0)
  t.strictSame(await ledger.invocations({ limit: 10 }), [refused, full])
  t.match(ask(folder, 'SELECT * FROM invocation_records ORDER BY sequence'), [
    { id: full.id, started_at: '2026-09-21T14:00:00.000Z', function: 'hello', outcome: 'timeout', instance_us: 700, error: null },
    { id: refused.id, error: 'saturated', outcome: 'refused' },
  ])
})

t.test('usage is grouped by function, owner and hour, and what was refused counts only as that', async (t) => {
  const { ledger } = await open(t.testdir())
  t.teardown(() => ledger.close())
  await Promise.all([
    save(ledger, record({ queueUs: 100, wallUs: 101_200, initUs: 1_000, start: 'host-cold', memoryMb: 128 }), 100_000),
    save(ledger, record({ outcome: 'exception', startedAtMs: START_MS + HOUR_MS - 1 }), 0),
    save(ledger, record({ functionName: 'other', revision: 'bb', owner: 'bob', startedAtMs: START_MS + HOUR_MS }), 0),
    save(ledger, record({ outcome: 'refused', error: 'saturated', start: 'isolate-cold' }), 50),
  ])
  ledger.writeBackground({
    functionName: 'other',
    revision: 'bb',
    owner: 'bob',
    host: 1,
    atMs: START_MS + HOUR_MS,
    cpuUs: 77,
    egressBytesIn: 3,
    egressBytesOut: 4,
    sockets: 1,
    socketUs: 5,
  })
  await save(ledger, record({ functionName: 'third', revision: 'cc', owner: 'bob', startedAtMs: START_MS + HOUR_MS }), 0)
  const hello = {
    ...NO_TOTALS,
    key: 'hello',
    invocations: 2,
    failures: 1,
    refused: 1,
    coldStarts: 1,
    cpuUs: 2_400,
    wallUs: 106_700,
    queueUs: 200,
    initUs: 1_000,
    exec1Ms: 101 + 6,
    exec1MbMs: 101 * 128 + 6 * 256,
    exec100Ms: 200 + 100,
    exec100MbMs: 200 * 128 + 100 * 256,
    init1Ms: 1,
    init1MbMs: 128,
    instanceUs: 100_000,
    instanceMbMs: 12_800,
    bytesIn: 30,
    bytesOut: 40,
    memoryPeakKb: 30_000,
  }
  const [first, other, third] = await ledger.usage({ by: 'function' })
  t.strictSame(first, hello)
  t.match(other, { key: 'other', invocations: 1, backgroundCpuUs: 77, egressBytesIn: 3, egressBytesOut: 4 })
  t.match(third, { key: 'third', invocations: 1 })
  t.match(await ledger.usage({ by: 'owner' }), [
    { key: 'ann', invocations: 2 },
    { key: 'bob', invocations: 2 },
  ])
  t.match(await ledger.usage({ by: 'hour' }), [
    { key: '2026-09-21T14:00:00.000Z', invocations: 2 },
    { key: '2026-09-21T15:00:00.000Z', invocations: 2 },
  ])
  t.match(await ledger.usage({ by: 'hour', functionName: 'hello' }), [{ key: '2026-09-21T14:00:00.000Z' }])
  t.match(await ledger.usage({ by: 'function', sinceMs: START_MS + HOUR_MS }), [{ key: 'other' }, { key: 'third' }])
  t.match(await ledger.usage({ by: 'function', sinceMs: START_MS + HOUR_MS - 1 }), [{ key: 'hello' }, {}, {}])
  t.strictSame(await ledger.usage({ by: 'function', functionName: 'nobody' }), [])
})

t.test('invocations are found by function, time, failure and length, before and after the totals hold them', async (t) => {
  const folder = t.testdir()
  const failed = record({ id: randomUUID(), outcome: 'exception', startedAtMs: START_MS + 1 })
  const slow = record({ functionName: 'other', revision: 'bb', wallUs: 9_000_000, startedAtMs: START_MS + HOUR_MS })
  const queued = record({ wallUs: 10_000_000, queueUs: 9_999_000, startedAtMs: START_MS + 2 * HOUR_MS })
  const refused = record({ outcome: 'refused', error: 'saturated', wallUs: 0, queueUs: 0, startedAtMs: START_MS + 3 * HOUR_MS })
  const all = [failed, slow, queued, refused]
  const look = async (): Promise<void> => {
    const { ledger } = await open(folder)
    const ids = async (query: Parameters<typeof ledger.invocations>[0]): Promise<number[]> =>
      (await ledger.invocations(query)).map(({ id }) => all.findIndex((record) => record.id === id))
    for (const record of (await ledger.invocations({ limit: 1 })).length === 0 ? all : []) await save(ledger, record, 0)
    t.strictSame(await ids({ limit: 10 }), [3, 2, 1, 0])
    t.strictSame(await ids({ limit: 2 }), [3, 2])
    t.strictSame(await ids({ limit: 0 }), [])
    t.strictSame(await ids({ limit: 10, failed: true }), [3, 0])
    t.strictSame(await ids({ limit: 10, slow: true }), [1, 0, 2, 3])
    t.strictSame(await ids({ limit: 10, slow: true, failed: true }), [0, 3])
    t.strictSame(await ids({ limit: 10, functionName: 'other' }), [1])
    t.strictSame(await ids({ limit: 10, functionName: 'hello', failed: true }), [3, 0])
    t.strictSame(await ids({ limit: 10, functionName: 'nobody' }), [])
    t.strictSame(await ids({ limit: 10, sinceMs: START_MS + HOUR_MS }), [3, 2, 1])
    t.strictSame(await ids({ limit: 10, sinceMs: START_MS + HOUR_MS + 1 }), [3, 2])
    t.strictSame(await ids({ limit: 10, sinceMs: START_MS + HOUR_MS, functionName: 'hello', slow: true }), [2, 3])
    await ledger.close()
  }
  await look()
  t.equal(ask(folder, 'SELECT sequence FROM totals_through')[0]?.['sequence'], 4)
  await look()
})

t.test('whoever follows gets each record once it is written, until they stop', async (t) => {
  const { ledger } = await open(t.testdir())
  t.teardown(() => ledger.close())
  const seen: InvocationRecord[] = []
  const first = record()
  const second = record()
  await save(ledger, record(), 0)
  const stop = ledger.follow((record) => seen.push(record))
  await Promise.all([save(ledger, first, 0), save(ledger, second, 0)])
  t.strictSame(seen, [first, second])
  stop()
  await save(ledger, record(), 0)
  t.equal(seen.length, 2)
})

t.test('whether a revision has run is known at once and after a restart; refused calls do not count', async (t) => {
  const folder = t.testdir()
  const { ledger } = await open(folder)
  t.notOk(ledger.hasRun('aa'))
  const written = [
    save(ledger, record({ revision: 'aa' }), 0),
    save(ledger, record({ revision: 'bb', outcome: 'refused', error: 'saturated' }), 0),
  ]
  t.ok(ledger.hasRun('aa'))
  t.notOk(ledger.hasRun('bb'))
  await Promise.all(written)
  await ledger.close()
  const again = await open(folder)
  t.teardown(() => again.ledger.close())
  t.ok(again.ledger.hasRun('aa'))
  t.notOk(again.ledger.hasRun('bb'))
})

t.test('figures that are no sound numbers are kept as sound ones', async (t) => {
  const { ledger, problems } = await open(t.testdir())
  t.teardown(() => ledger.close())
  const odd = record({
    cpuUs: Number.NaN,
    initUs: -5,
    wallUs: 1e300,
    memoryPeakKb: Number.POSITIVE_INFINITY,
    egressBytesIn: 1.9,
    startedAtMs: 1e18,
    bytesIn: -0,
  })
  for (let i = 0; i < 3; i += 1) await save(ledger, odd, -1)
  const [row] = await ledger.invocations({ limit: 1 })
  t.match(row, { cpuUs: 0, initUs: 0, wallUs: Number.MAX_SAFE_INTEGER, memoryPeakKb: 0, egressBytesIn: 1, startedAtMs: 8.64e15 })
  const [totals] = await ledger.usage({ by: 'hour' })
  t.match(totals, { key: '+275760-09-13T00:00:00.000Z', invocations: 3, wallUs: Number.MAX_SAFE_INTEGER, instanceUs: 0 })
  for (const figure of Object.values(totals ?? {})) if (typeof figure === 'number') t.ok(Number.isSafeInteger(figure))
  await ledger.close()
  t.strictSame(problems, [])
})

t.test('a record that cannot be told from others is refused, and told to the operator', async (t) => {
  const { ledger, problems } = await open(t.testdir())
  t.teardown(() => ledger.close())
  for (const id of ['', 'x'.repeat(36), `${randomUUID().slice(0, 35)}g`, randomUUID().replaceAll('-', '_')]) {
    await t.rejects(save(ledger, record({ id }), 0), { code: 'internal' })
  }
  t.equal(problems.length, 4)
  await save(ledger, record(), 0)
  t.equal((await ledger.invocations({ limit: 10 })).length, 1)
})

t.test('words of a newer version are read as they are', async (t) => {
  const folder = t.testdir()
  const { ledger } = await open(folder)
  t.teardown(() => ledger.close())
  await save(ledger, record({ outcome: 'exception' }), 0)
  t.equal((await ledger.invocations({ limit: 1 })).length, 1)
  const other = new DatabaseSync(fileOf(folder))
  other.exec(`UPDATE invocations SET outcome = 'melted', start = 'frozen', trigger = 'queue', error = 'odd'`)
  other.close()
  t.match(await ledger.invocations({ limit: 1, failed: true }), [
    { outcome: 'melted', start: 'frozen', trigger: 'queue', error: 'odd' },
  ])
})

t.test('the limits and the owner of a function may change, and rows keep those they ran with', async (t) => {
  const folder = t.testdir()
  const { ledger } = await open(folder)
  const given = [record(), record({ memoryMb: 512 }), record(), record({ owner: 'bob' })]
  for (const each of given) await save(ledger, each, 0)
  await ledger.close()
  const again = await open(folder)
  t.teardown(() => again.ledger.close())
  await save(again.ledger, record({ memoryMb: 512 }), 0)
  t.strictSame(
    (await again.ledger.invocations({ limit: 9 })).toReversed().map(({ memoryMb, owner }) => [memoryMb, owner]),
    [
      [256, 'ann'],
      [512, 'ann'],
      [256, 'ann'],
      [256, 'bob'],
      [512, 'ann'],
    ],
  )
  t.equal(ask(folder, 'SELECT count(*) AS n FROM revisions')[0]?.['n'], 3)
})

t.test('many can be written and read at the same time, and every answer holds what was confirmed before', async (t) => {
  const { ledger, problems } = await open(t.testdir())
  t.teardown(() => ledger.close())
  let confirmed = 0
  const writes: Promise<void>[] = []
  const reads: Promise<void>[] = []
  for (let round = 0; round < 40; round += 1) {
    for (let i = 0; i < 250; i += 1) {
      writes.push(
        save(ledger, record({ functionName: `f${i % 7}`, revision: `r${i % 7}` }), 0).then(() => {
          confirmed += 1
        }),
      )
    }
    const least = confirmed
    reads.push(
      ledger.usage({ by: 'owner' }).then((rows) => {
        t.ok((rows[0]?.invocations ?? 0) >= least)
      }),
    )
    await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all([...writes, ...reads])
  t.match(await ledger.usage({ by: 'owner' }), [{ invocations: 10_000 }])
  t.strictSame(problems, [])
})

t.test('the file is for its owner only, and open to other readers', async (t) => {
  const folder = t.testdir()
  const { ledger } = await open(folder)
  await save(ledger, record(), 0)
  await ledger.usage({ by: 'hour' })
  for (const ending of ['', '-wal', '-shm']) t.equal(statSync(`${fileOf(folder)}${ending}`).mode & 0o077, 0)
  t.equal(statSync(join(folder, 'ledger-journal-1')).mode & 0o077, 0)
  t.equal(ask(folder, 'SELECT count(*) AS n FROM invocations')[0]?.['n'], 1)
  await ledger.close()
  t.strictSame(readdirSync(folder), ['ledger.sqlite'], 'a clean end leaves one file')
})

t.test('after the end, writes and queries are refused', async (t) => {
  const { ledger, problems } = await open(t.testdir())
  await Promise.all([ledger.close(), ledger.close()])
  await t.rejects(save(ledger, record(), 0), new CarpoolError('ledger-unavailable', 'The invocation could not be recorded.'))
  await t.rejects(ledger.usage({ by: 'hour' }), { code: 'draining' })
  t.equal(problems[0]?.lost?.length, 1)
})

t.test('what is queued at the end is written', async (t) => {
  const folder = t.testdir()
  const { ledger, problems } = await open(folder)
  const writes = Array.from({ length: 20_000 }, () => save(ledger, record(), 0))
  await Promise.all([ledger.close(), ...writes])
  t.equal(ask(folder, 'SELECT count(*) AS n FROM invocations')[0]?.['n'], 20_000)
  t.equal(ask(folder, 'SELECT sum(invocations) AS n FROM totals')[0]?.['n'], 20_000)
  t.strictSame(problems, [])
})
