import { RATE_CARD_NAMES, type Bill } from '@carpool/billing'
import type { InvocationRecord, UsageRow, UsageTotals } from '@carpool/core'
import t from 'tap'
import { startServer } from '../../../test/support/server.ts'

interface Usage {
  readonly rows: readonly UsageRow[]
  readonly total: UsageTotals
}

interface Comparison {
  readonly bills: readonly Bill[]
  readonly usage: UsageTotals
}

const WAITER = `export default { fetch: async () => {
  await new Promise((resolve) => setTimeout(resolve, 100))
  return new Response('waited')
} }`
const THROWER = `export default { fetch: () => { throw new Error('on purpose') } }`

/** Without what may still come in after the last answer. */
function settled(total: UsageTotals): UsageTotals {
  return { ...total, backgroundCpuUs: 0 }
}

/** To the millisecond, for the start is given no finer. */
function endedAtMs({ startedAtMs, wallUs }: InvocationRecord): number {
  return startedAtMs + Math.floor(wallUs / 1000)
}

t.test('what was called is shown by usage, invocations and bill alike', async (t) => {
  const server = await startServer(t)
  await server.deploy('waiter', WAITER)
  await server.deploy('thrower', THROWER)
  const answers = await Promise.all([
    ...Array.from({ length: 10 }, () => server.get('/waiter/')),
    ...Array.from({ length: 3 }, () => server.get('/thrower/')),
  ])
  await Promise.all(answers.map((answer) => answer.text()))
  t.strictSame(
    answers.map(({ status }) => status),
    [...Array<number>(10).fill(200), ...Array<number>(3).fill(500)],
  )

  await t.test('usage by function', async (t) => {
    const { rows, total } = await server.json<Usage>('usage')
    const byKey = new Map(rows.map((row) => [row.key, row]))
    t.match(byKey.get('waiter'), { invocations: 10, failures: 0, refused: 0 })
    t.match(byKey.get('thrower'), { invocations: 3, failures: 3, refused: 0 })
    t.match(total, { invocations: 13, failures: 3 })
    for (const { cpuUs, wallUs, memoryPeakKb } of rows) t.ok(cpuUs > 0 && wallUs >= cpuUs && memoryPeakKb > 0)
  })

  await t.test('usage by owner and by hour is the same in total', async (t) => {
    const { total } = await server.json<Usage>('usage')
    for (const by of ['owner', 'hour']) {
      const { instanceMbMs, ...same } = settled((await server.json<Usage>('usage', '--by', by)).total)
      const { instanceMbMs: expected, ...rest } = settled(total)
      t.strictSame(same, rest)
      // Each row is a whole number for itself.
      t.ok(Math.abs(instanceMbMs - expected) <= 2)
    }
    const { rows } = await server.json<Usage>('usage', '--by', 'hour')
    for (const { key } of rows) t.match(key, /^\d{4}-\d\d-\d\dT\d\d:00:00/)
  })

  await t.test('usage since a time to come is nothing', async (t) => {
    const { rows } = await server.json<Usage>('usage', '--since', '9999-01-01')
    t.strictSame(rows, [])
  })

  await t.test('invocations, the newest first, and those of one function, those that failed, the slow ones', async (t) => {
    const ask = (...args: string[]) => server.json<InvocationRecord[]>('invocations', ...args)
    const all = await ask()
    t.equal(all.length, 13)
    t.ok(
      all.every((record, index) => index === 0 || endedAtMs(record) <= endedAtMs(all[index - 1]!) + 1),
      'the one that ended last comes first',
    )
    t.strictSame(new Set(all.map(({ id }) => id)).size, 13)
    t.strictSame(new Set(all.map(({ id }) => id)), new Set(answers.map(({ headers }) => headers.get('x-carpool-invocation'))))
    t.equal((await ask('waiter')).length, 10)
    t.match(
      await ask('--failed'),
      Array.from({ length: 3 }, () => ({ functionName: 'thrower', outcome: 'exception', status: 500 })),
    )
    t.match(
      await ask('--slow', '-n', '2'),
      Array.from({ length: 2 }, () => ({ functionName: 'waiter', outcome: 'ok' })),
    )
    t.strictSame(await ask('--since', '9999-01-01'), [])
  })

  await t.test('bill', async (t) => {
    const { bills, usage } = await server.json<Comparison>('bill')
    t.strictSame(
      bills.map(({ card }) => card),
      [...RATE_CARD_NAMES],
    )
    t.equal(usage.invocations, 13)
    for (const { total, waiting } of bills) t.ok(total > 0 && waiting >= 0 && waiting < total)
    const { code, stdout } = await server.carpool('bill', '--card', 'lambda', '--by', 'hour')
    t.equal(code, 0)
    t.match(stdout, /\nHOUR +TOTAL +OF IT WAITING +SHARE\n/)
  })

  await t.test('the tables are printed', async (t) => {
    t.match((await server.carpool('usage')).stdout, /\nwaiter +10 +0 +0 /)
    t.match((await server.carpool('invocations', 'thrower')).stdout, /  thrower  +exception  +/)
    t.match((await server.carpool('bill')).stdout, /\n13 calls used /)
  })
})
