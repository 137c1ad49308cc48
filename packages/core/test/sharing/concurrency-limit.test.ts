import fc from 'fast-check'
import t from 'tap'
import { concurrencyLimit, concurrencyLimitByKey } from '../../src/sharing/concurrency-limit.ts'

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

t.test('of each key so much at a time, whatever the others do; nothing is kept of one that is done', async (t) => {
  const limited = concurrencyLimitByKey(1)
  const began: string[] = []
  const gates = new Map<string, () => void>()
  const run = (key: string, name: string): Promise<void> =>
    limited(key, () => {
      began.push(name)
      return new Promise((resolve) => gates.set(name, resolve))
    })
  const all = [run('a', 'a1'), run('a', 'a2'), run('b', 'b1')]
  await Promise.resolve()
  t.strictSame(began, ['a1', 'b1'])
  gates.get('a1')?.()
  await all[0]
  await new Promise(setImmediate)
  t.strictSame(began, ['a1', 'b1', 'a2'])
  gates.get('a2')?.()
  gates.get('b1')?.()
  await Promise.all(all)
})
