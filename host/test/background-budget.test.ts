import fc from 'fast-check'
import t from 'tap'
import { BackgroundBudget } from '../src/accounting/background-budget.ts'

t.test('as much as one invocation at once, a tenth of a core in the long run', async (t) => {
  const budget = new BackgroundBudget()
  t.ok(budget.take(100e6, 100, 1_000))
  t.notOk(budget.take(101e6, 100, 1_000))
  t.ok(budget.take(111e6, 100, 2_000), 'a second has forgiven 100 ms')
})

t.test('a tenth of a core is never too much, a fifth is in the end', async () => {
  const limit = fc.integer({ min: 5, max: 10_000 })
  const step = fc.integer({ min: 10, max: 1_000 })
  fc.assert(
    fc.property(limit, step, (limitMs, stepMs) => {
      const [modest, greedy] = [new BackgroundBudget(), new BackgroundBudget()]
      let isOver = false
      const steps = Math.ceil((limitMs * 12) / stepMs) + 12
      for (let index = 1; index <= steps; index++) {
        if (!modest.take(index * Math.min(stepMs * 1e5, limitMs * 1e6), limitMs, index * stepMs)) return false
        isOver ||= !greedy.take(index * stepMs * 2e5, limitMs, index * stepMs)
      }
      return isOver
    }),
  )
})

t.test('what V8 does between entries is paid for by the part in what ran of late', async (t) => {
  const budget = new BackgroundBudget()
  // A quarter of the first 40 ms was background work.
  budget.between(8e6, 40e6, 10e6)
  t.ok(budget.take(10e6, 12, 0))
  t.notOk(budget.take(10e6 + 1, 12, 0), '10 ms and a quarter of 8')
  // Ten seconds of calls later it hardly counts any more, though it was there before.
  budget.between(8e6, 10_040e6, 10e6)
  t.ok(budget.take(10e6, 12, 0.1))
  budget.between(8e6, 10_040e6, 10e6)
  t.ok(budget.take(10e6, 12, 1), 'nor the next time')
  budget.between(8e6, 20_040e6, 10_010e6)
  t.notOk(budget.take(10e6, 12, 1), 'all of it was background work since')
})
