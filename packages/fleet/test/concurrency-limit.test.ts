import fc from 'fast-check'
import t from 'tap'
import { concurrencyLimit } from '../src/index.ts'

t.test('no more than the limit runs at a time, in order, also when work fails', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(fc.boolean(), { maxLength: 20 }),
      fc.scheduler(),
      async (max, works, scheduler) => {
        const limited = concurrencyLimit(max)
        const begun: number[] = []
        let running = 0
        let most = 0
        const all = works.map((succeeds, index) =>
          limited(async () => {
            begun.push(index)
            most = Math.max(most, ++running)
            await scheduler.schedule(Promise.resolve())
            running--
            if (!succeeds) throw new Error('no')
          }).catch(() => {}),
        )
        await scheduler.waitFor(Promise.all(all))
        return most <= max && running === 0 && begun.every((value, index) => value === index) && begun.length === works.length
      },
    ),
  )
})
