import fc from 'fast-check'
import t from 'tap'
import type { Holder } from '../../src/sharing/fair-order.ts'
import { SharedPool } from '../../src/sharing/shared-pool.ts'

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

const TOTAL = 1_000

/** Who holds single things, and gives them back at random, until everyone who may takes more. */
class Turnover {
  readonly pool = new SharedPool(TOTAL)
  readonly #held: Holder[] = []

  /** @param random from 0 to 1 */
  giveBack(random: number): void {
    const [given] = this.#held.splice(Math.floor(random * this.#held.length), 1)
    if (given !== undefined) this.pool.give(given, 1)
  }

  /** Each in turn takes one, until none of them may. */
  take(holders: readonly Holder[]): void {
    for (let taken = 1; taken > 0; ) {
      taken = 0
      for (const one of holders) {
        if (!this.pool.tryTake(one, 1)) continue
        this.#held.push(one)
        taken++
      }
    }
  }

  heldBy(is: (holder: Holder) => boolean): number {
    return this.#held.filter(is).length
  }
}

t.test('who takes whatever is free comes to the share of an owner, however many functions each has', async () => {
  const functionsOf = fc.array(fc.constantFrom(1, 1, 3, 20), { minLength: 2, maxLength: 4 })
  const randoms = fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 3_000, maxLength: 3_000 })
  fc.assert(
    fc.property(functionsOf, randoms, fc.boolean(), (owners, randoms, isFirstAlone) => {
      const turnover = new Turnover()
      const holders = owners.map((functions, owner) =>
        Array.from({ length: functions }, (_, index) => holder(`o${owner}-f${index}`, `o${owner}`)),
      )
      if (isFirstAlone) turnover.take(holders[0]!)
      for (const random of randoms) {
        turnover.giveBack(random)
        turnover.take(holders.flat())
      }
      // Each may hold half of what is free: so free are two parts, and each owner has one.
      const share = TOTAL / (owners.length + 2)
      return owners.every((functions, owner) => {
        const ofOwner = turnover.heldBy((one) => one.owner === `o${owner}`)
        const ofEach = holders[owner]!.map(({ functionName }) => turnover.heldBy((one) => one.functionName === functionName))
        const isFair = Math.abs(ofOwner - share) <= 0.1 * share + functions
        return isFair && Math.min(...ofEach) >= Math.floor((0.5 * share) / functions)
      })
    }),
    { numRuns: 20 },
  )
})

t.test('a function that comes when another of its owner has all of their share gets its part of it', async (t) => {
  const pool = new SharedPool(TOTAL)
  t.ok(pool.tryTake(holder('other'), 1))
  exhaust(pool, holder('greedy', 'many'))
  const ofQuiet = exhaust(pool, holder('quiet', 'many'))
  t.ok(ofQuiet > 50, `${ofQuiet}`)
  t.notOk(pool.tryTake(holder('greedy', 'many'), 1))
})

t.test('names that anybody can make up are forgotten, those who hold something are not', async (t) => {
  const pool = new SharedPool(1_000_000)
  pool.tryTake(holder('kept', 'owner'), 7)
  for (let index = 0; index < 10_000; index += 1) {
    const some = index % 2 === 0 ? holder(`f${index}`, '') : holder(`f${index}`)
    pool.tryTake(some, 1)
    pool.give(some, 1)
    if (pool.remembered > 300) return t.fail(`${pool.remembered} names after ${index} calls`)
  }
  t.equal(pool.used, 7)
  pool.give(holder('kept', 'owner'), 7)
  t.equal(pool.used, 0)
})
