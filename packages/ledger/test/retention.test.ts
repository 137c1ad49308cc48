import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { retentionClock } from '../src/retention.ts'
import { ask, HOUR_MS, idsIn, open, record, save, START_MS } from './fixtures/records.ts'

const DAY_MS = 24 * HOUR_MS

/** Lets the ledger delete what is over the age at that time. */
async function sweep(folder: string, nowMs: number, expectedRows: number): Promise<void> {
  const { ledger, problems } = await open(folder, { retentionDays: 2, now: () => nowMs })
  while (
    Number(ask(folder, 'SELECT (SELECT count(*) FROM invocations) + (SELECT count(*) FROM background) AS n')[0]?.['n']) >
    expectedRows
  ) {
    await setImmediate()
  }
  await ledger.close()
  t.strictSame(problems, [])
}

t.test('rows over the age are deleted by whole hours, and the totals stay', async (t) => {
  const folder = t.testdir()
  const { ledger } = await open(folder)
  const old = Array.from({ length: 1_700 }, (_, index) => record({ startedAtMs: START_MS + index }))
  // Between old rows and after them, as calls of one hour end in another.
  const young = Array.from({ length: 40 }, () => record({ startedAtMs: START_MS + HOUR_MS }))
  const mixed = [...old.slice(0, 900), ...young.slice(0, 20), ...old.slice(900), ...young.slice(20)]
  for (const record of mixed) void save(ledger, record, 0)
  ledger.writeBackground({ ...record(), atMs: START_MS, host: 1 })
  const usage = async (): Promise<unknown> => {
    const { ledger } = await open(folder)
    const rows = await ledger.usage({ by: 'hour' })
    await ledger.close()
    return rows
  }
  await ledger.close()
  const before = await usage()

  await sweep(folder, START_MS + HOUR_MS + 2 * DAY_MS - 1, mixed.length + 1)
  t.equal(idsIn(folder).length, mixed.length, 'the hour is not over that age yet')
  await sweep(folder, START_MS + HOUR_MS + 2 * DAY_MS, young.length)
  t.strictSame(
    idsIn(folder),
    young.map(({ id }) => id),
  )
  t.strictSame(await usage(), before)
  await sweep(folder, START_MS + 9 * DAY_MS, 0)
  t.strictSame(await usage(), before)
})

t.test('after everything was deleted, new rows are counted as before', async (t) => {
  const folder = t.testdir()
  const first = await open(folder)
  await save(first.ledger, record(), 0)
  await first.ledger.close()
  await sweep(folder, START_MS + 9 * DAY_MS, 0)
  const { ledger } = await open(folder)
  await save(ledger, record(), 0)
  t.match(await ledger.usage({ by: 'function' }), [{ invocations: 2 }])
  await ledger.close()
  t.match(ask(folder, 'SELECT invocations FROM totals'), [{ invocations: 2 }])
})

t.test('a row from the far future neither goes nor takes others with it', async (t) => {
  const folder = t.testdir()
  const { ledger } = await open(folder)
  const future = record({ startedAtMs: START_MS + 3_650 * DAY_MS })
  const past = record({ startedAtMs: 0 })
  const present = record()
  for (const each of [future, past, present]) await save(ledger, each, 0)
  await ledger.close()
  await sweep(folder, START_MS, 2)
  t.strictSame(idsIn(folder), [future.id, present.id])
})

t.test('rows of an hour that was swept may still come, and are swept as well', async (t) => {
  const folder = t.testdir()
  for (let round = 0; round < 3; round += 1) {
    const { ledger } = await open(folder)
    await save(ledger, record(), 0)
    await ledger.close()
    await sweep(folder, START_MS + 9 * DAY_MS, 0)
  }
  t.match(ask(folder, 'SELECT invocations, first_sequence FROM totals'), [{ invocations: 3, first_sequence: null }])
})

t.test('a clock that jumps forward does not age rows; one that is set back makes them younger', async (t) => {
  let wallMs = START_MS
  let monotonicMs = 5_000
  const nowMs = retentionClock(
    () => wallMs,
    () => monotonicMs,
  )
  const pass = (ms: number): void => {
    wallMs += ms
    monotonicMs += ms
  }
  pass(HOUR_MS)
  t.equal(nowMs(), START_MS + HOUR_MS)
  wallMs += 400 * DAY_MS
  t.equal(nowMs(), START_MS + HOUR_MS)
  pass(HOUR_MS)
  t.equal(nowMs(), START_MS + 2 * HOUR_MS)
  wallMs -= 400 * DAY_MS
  t.equal(nowMs(), START_MS + 2 * HOUR_MS)
  wallMs -= 5 * HOUR_MS
  t.equal(nowMs(), START_MS - 3 * HOUR_MS)
  pass(HOUR_MS)
  t.equal(nowMs(), START_MS - 2 * HOUR_MS)
})
