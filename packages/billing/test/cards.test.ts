import t, { type Test } from 'tap'
import { priceUsage, rateCard, type RateCardName } from '../src/index.ts'
import { totals } from './fixtures/totals.ts'

type Sums = readonly [amount: number, waiting: number]

/** Checks the amount and the waiting of each line against what was computed by hand. */
function check(t: Test, card: RateCardName, usage: Parameters<typeof totals>[0], expected: Readonly<Record<string, Sums>>) {
  const bill = priceUsage(rateCard(card), totals(usage))
  const near = (actual: number, by: number, what: string) =>
    t.ok(Math.abs(actual - by) <= Math.abs(by) * 1e-9, `${card}, ${what}: ${actual}, by hand ${by}`)
  t.strictSame(
    bill.lines.map(({ name }) => name),
    Object.keys(expected),
  )
  for (const { name, amount, waiting } of bill.lines) {
    const [expectedAmount, expectedWaiting] = expected[name] as Sums
    near(amount, expectedAmount, name)
    near(waiting, expectedWaiting, `${name}, waiting`)
  }
  const add = (index: 0 | 1) => Object.values(expected).reduce((sum, sums) => sum + sums[index], 0)
  near(bill.total, add(0), 'total')
  near(bill.waiting, add(1), 'total, waiting')
}

/**
 * Ten calls at once of a function of 1,024 MiB: each waits 2 s and uses 1 ms of CPU; one of them waited 40 ms for a start, with
 * 10 ms of CPU.
 */
const TEN_AT_ONCE = {
  invocations: 10,
  coldStarts: 1,
  cpuUs: 10_000,
  initCpuUs: 10_000,
  exec1Ms: 10 * 2001,
  exec1MbMs: 10 * 2001 * 1024,
  exec100Ms: 10 * 2100,
  exec100MbMs: 10 * 2100 * 1024,
  init1Ms: 40,
  init1MbMs: 40 * 1024,
  instanceUs: 2_050_000,
  instanceMbMs: 2050 * 1024,
}

t.test('lambda-2018 charges 100 ms for every begun 100 ms, and nothing for starts', async (t) => {
  const seconds = 21
  check(t, 'lambda-2018', TEN_AT_ONCE, {
    duration: [seconds * 0.0000166667, seconds * 0.0000166667 * (1 - 0.01 / 21)],
    requests: [10 * 0.0000002, 0],
  })
})

t.test('a call of 1 ms costs a hundred times as much under lambda-2018 as under lambda', async (t) => {
  const usage = { invocations: 1, cpuUs: 1000, exec1Ms: 1, exec1MbMs: 128, exec100Ms: 100, exec100MbMs: 12_800 }
  const perMs = 0.0000166667 / 1000 / 8
  check(t, 'lambda-2018', usage, { duration: [100 * perMs, 99 * perMs], requests: [0.0000002, 0] })
  check(t, 'lambda', usage, { duration: [perMs, 0], init: [0, 0], requests: [0.0000002, 0] })
})

t.test('lambda charges every ms, starts too', async (t) => {
  check(t, 'lambda', TEN_AT_ONCE, {
    duration: [20.01 * 0.0000166667, 20 * 0.0000166667],
    init: [0.04 * 0.0000166667, 0.03 * 0.0000166667],
    requests: [10 * 0.0000002, 0],
  })
})

t.test('lambda agrees with the example of its source: 60 million calls of 28 ms with 1 GB', async (t) => {
  const calls = 60_000_000
  const usage = { invocations: calls, exec1MbMs: calls * 28 * 1024, exec100MbMs: calls * 100 * 1024 }
  t.equal(Math.round(priceUsage(rateCard('lambda'), totals(usage)).total), 28 + 12)
  t.equal(Math.round(priceUsage(rateCard('lambda-2018'), totals(usage)).total), 100 + 12)
})

t.test('cloud-run charges CPU and memory of the instance that the ten calls share', async (t) => {
  const share = 1 - 0.02 / 2.05
  check(t, 'cloud-run', TEN_AT_ONCE, {
    CPU: [2.05 * 0.000024, 2.05 * 0.000024 * share],
    memory: [2.05 * 0.0000025, 2.05 * 0.0000025 * share],
    requests: [10 * 0.0000004, 0],
  })
})

t.test('workers charges CPU, also after the answer, and never waiting', async (t) => {
  check(
    t,
    'workers',
    { ...TEN_AT_ONCE, backgroundCpuUs: 5000 },
    {
      'CPU': [10 * 0.00000002, 0],
      'CPU after the answer': [5 * 0.00000002, 0],
      'requests': [10 * 0.0000003, 0],
    },
  )
})

t.test('workers agrees with the example of its source: 100 million requests of 7 ms, less what is included', async (t) => {
  const usage = { invocations: 100_000_000 - 10_000_000, cpuUs: (100_000_000 * 7 - 30_000_000) * 1000 }
  check(t, 'workers', usage, { 'CPU': [13.4, 0], 'CPU after the answer': [0, 0], 'requests': [27, 0] })
})

t.test('active-cpu charges CPU by the hour, and waiting only by the memory', async (t) => {
  check(
    t,
    'active-cpu',
    { ...TEN_AT_ONCE, backgroundCpuUs: 5000 },
    {
      'active CPU': [(0.01 / 3600) * 0.128, 0],
      'active CPU of starts': [(0.01 / 3600) * 0.128, 0],
      'active CPU after the answer': [(0.005 / 3600) * 0.128, 0],
      'memory': [(2.05 / 3600) * 0.0106, (2.03 / 3600) * 0.0106],
      'invocations': [10 * 0.0000006, 0],
    },
  )
})

t.test('calls that were refused cost nothing', async (t) => {
  for (const card of ['lambda-2018', 'lambda', 'cloud-run', 'workers', 'active-cpu'] as const) {
    t.equal(priceUsage(rateCard(card), totals({ refused: 1000 })).total, 0, card)
  }
})
