import fc from 'fast-check'
import t from 'tap'
import { BackgroundBudget } from '../src/accounting/background-budget.ts'

t.test('as much as one invocation at once, a tenth of a core in the long run', async (t) => {
  const budget = new BackgroundBudget()
  t.ok(budget.take(100, 100, 1_000))
  t.notOk(budget.take(1, 100, 1_000))
  t.ok(budget.take(10, 100, 2_000), 'a second has forgiven 100 ms')
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
        if (!modest.take(Math.min(stepMs * 0.1, limitMs), limitMs, index * stepMs)) return false
        isOver ||= !greedy.take(stepMs * 0.2, limitMs, index * stepMs)
      }
      return isOver
    }),
  )
})
