import fc from 'fast-check'
import t from 'tap'
import { SharedPool, type Holder } from '../src/shared-pool.ts'

const holder = (functionName: string, owner = functionName): Holder => ({ functionName, owner })

/** Takes single things until there are no more for this holder. */
function exhaust(pool: SharedPool, holder: Holder): number {
  let taken = 0
  while (pool.tryTake(holder, 1)) taken += 1
  return taken
}

t.test('alone, a function gets a third and an owner half of the pool', async (t) => {
  t.equal(exhaust(new SharedPool(300), holder('greedy')), 100)
  const pool = new SharedPool(1_000)
  for (let index = 0; index < 50; index += 1) exhaust(pool, holder(`f${index}`, 'greedy'))
  t.equal(pool.used, 500)
  t.ok(exhaust(pool, holder('neighbour')) > 100, 'another owner finds much of the rest')
})

t.test('however many flood, one who holds nothing gets something as long as there is anything', async () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 8 }), (total, floods) => {
      const pool = new SharedPool(total)
      for (let index = 0; index < floods; index += 1) exhaust(pool, holder(`flood${index}`))
      return pool.used >= total || pool.tryTake(holder('neighbour'), 1)
    }),
  )
  const pool = new SharedPool(10_000)
  for (let index = 0; index < 10; index += 1) exhaust(pool, holder(`flood${index}`))
  t.ok(exhaust(pool, holder('neighbour')) > 30, 'ten floods leave room')
})

t.test('never more than all of it is out, and what comes back can be taken again', async () => {
  const step = fc.record({
    name: fc.constantFrom('a', 'b', 'c'),
    owner: fc.constantFrom('x', 'y'),
    amount: fc.integer({ min: 0, max: 60 }),
    gives: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const pool = new SharedPool(100)
      const out: [Holder, number][] = []
      for (const { name, owner, amount, gives } of steps) {
        const [given] = gives ? out.splice(0, 1) : []
        if (given !== undefined) pool.give(...given)
        else if (pool.tryTake(holder(name, owner), amount)) out.push([holder(name, owner), amount])
        const sum = out.reduce((sum, [, amount]) => sum + amount, 0)
        if (pool.used !== sum || sum > 100) return false
      }
      for (const [who, amount] of out) pool.give(who, amount)
      return pool.used === 0 && exhaust(pool, holder('after')) === 33
    }),
  )
})
