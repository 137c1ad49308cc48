import fc from 'fast-check'
import t from 'tap'
import { FairQueue, type Queued } from '../src/fair-queue.ts'

const ALL = () => true
const at = (atMs: number, costMs = 1) => ({ atMs, costMs })
const itemsOf = <T>(entries: Iterable<Queued<T>>): T[] => Array.from(entries, ({ item }) => item)

function drain<T>(queue: FairQueue<T>): T[] {
  const taken: T[] = []
  for (let entry = queue.take(ALL, 'oldest'); entry !== undefined; entry = queue.take(ALL, 'oldest')) taken.push(entry.item)
  return taken
}

t.test('within a key the oldest or the newest leaves first', async (t) => {
  const queue = new FairQueue<number>(10)
  for (const item of [1, 2, 3]) queue.push('a', item, at(item))
  t.match(queue.take(ALL, 'newest'), { key: 'a', item: 3, atMs: 3 })
  t.match(queue.take(ALL, 'oldest'), { key: 'a', item: 1, atMs: 1 })
  t.equal(queue.size, 1)
})

t.test('a key that cannot run is passed over, and does not catch up on it', async (t) => {
  const queue = new FairQueue<string>(100)
  for (let n = 0; n < 9; n++) for (const key of ['a', 'b']) queue.push(key, `${key}${n}`, at(n))
  const onlyB = (key: string): boolean => key === 'b'
  for (let n = 0; n < 5; n++) t.equal(queue.take(onlyB, 'oldest')?.key, 'b')
  t.equal(
    queue.take(() => false, 'oldest'),
    undefined,
  )
  t.strictSame(drain(queue).slice(0, 6), ['a0', 'b5', 'a1', 'b6', 'a2', 'b7'])
})

t.test('a full queue lets the longest waiting of the longest key go', async (t) => {
  const queue = new FairQueue<string>(3)
  queue.push('flood', 'f1', at(1))
  queue.push('flood', 'f2', at(2))
  queue.push('calm', 'c1', at(3))
  const { entry, pushedOut } = queue.push('calm', 'c2', at(4))
  t.equal(pushedOut?.item, 'c1', 'of keys that are equally long it is the one that pushes')
  t.equal(entry.item, 'c2')
  t.equal(queue.push('rare', 'r1', at(5)).pushedOut?.item, 'f1')
  t.equal(queue.size, 3)
})

t.test('a key that comes anew goes behind those that are due already', async (t) => {
  const queue = new FairQueue<string>(100)
  for (let n = 0; n < 3; n++) for (const key of ['a', 'b']) queue.push(key, `${key}${n}`, at(n))
  for (let n = 0; n < 3; n++) queue.take(ALL, 'oldest')
  queue.push('c', 'c0', at(3))
  t.strictSame(drain(queue), ['b1', 'c0', 'a2', 'b2'])
})

t.test('a key that sends one call after the other pays for each', async (t) => {
  const queue = new FairQueue<string>(1000)
  for (let n = 0; n < 500; n++) queue.push('many', 'many', at(n))
  const served = { many: 0, single: 0 }
  queue.push('single', 'single', at(0, 10))
  for (let n = 0; n < 300; n++) {
    const { item, costMs } = queue.take(ALL, 'oldest')!
    served[item as keyof typeof served] += costMs
    if (item === 'single') queue.push('single', 'single', at(n, 10))
  }
  t.ok(Math.abs(served.many - served.single) <= 11, `${served.many} ms and ${served.single} ms`)
})

t.test('a queue of no places gives back what comes', async (t) => {
  const queue = new FairQueue<string>(0)
  const { entry, pushedOut } = queue.push('a', 'a1', at(1))
  t.equal(pushedOut, entry)
  t.equal(queue.size, 0)
  t.equal(queue.oldestAtMs, undefined)
})

t.test('who has left cannot be taken, and leaves only once', async (t) => {
  const queue = new FairQueue<number>(10)
  const [one, two, three] = [1, 2, 3].map((item) => queue.push('a', item, at(item)).entry)
  t.equal(queue.remove(two!), true)
  t.equal(queue.remove(two!), false)
  t.equal(queue.take(ALL, 'oldest'), one)
  t.equal(queue.remove(one!), false)
  t.equal(queue.take(ALL, 'oldest'), three)
  t.equal(queue.take(ALL, 'oldest'), undefined)
})

t.test('those whose wait is over leave, oldest first', async (t) => {
  const queue = new FairQueue<string>(10)
  queue.push('a', 'a1', at(1))
  queue.push('b', 'b2', at(2))
  queue.push('a', 'a3', at(3))
  queue.push('b', 'b9', at(9))
  t.strictSame(
    queue.removeWhere(({ atMs }) => atMs < 1),
    [],
  )
  t.strictSame(itemsOf(queue.removeWhere(({ atMs }) => atMs <= 3)), ['a1', 'b2', 'a3'])
  t.same([queue.sizeOf('a'), queue.sizeOf('b')], [0, 1])
  t.equal(queue.oldestAtMs, 9)
})

t.test('a key that costs nothing, or no number, does not starve the others', async (t) => {
  for (const costMs of [0, -1, Number.NaN]) {
    const queue = new FairQueue<string>(1000)
    for (let n = 0; n < 200; n++) queue.push('free', 'free', at(n, costMs))
    queue.push('paid', 'paid', at(0, 1))
    queue.push('paid', 'paid', at(0, 1))
    t.ok(drain(queue).lastIndexOf('paid') <= 60, `cost ${costMs}`)
  }
})

const keys = fc.constantFrom('a', 'b', 'c', 'd')
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('push' as const), key: keys, costMs: fc.double({ min: 0, max: 200 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('take' as const), blocked: fc.subarray(['a', 'b', 'c', 'd']), newest: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), index: fc.nat(100) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('expire' as const), age: fc.nat(30) }) },
)

function isOldestOfLongest({ key, item }: Queued<number>, waiting: ReadonlyArray<Queued<number>>): boolean {
  const itemsOfKey = (key: string): number[] => waiting.filter((entry) => entry.key === key).map(({ item }) => item)
  const longest = Math.max(...waiting.map((entry) => itemsOfKey(entry.key).length))
  return itemsOfKey(key).length === longest && item === Math.min(...itemsOfKey(key))
}

t.test('nothing is lost or comes twice, and the counts are right', async () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300, size: 'max' }), fc.integer({ min: 0, max: 12 }), (steps, maxQueued) => {
      const queue = new FairQueue<number>(maxQueued)
      const waiting = new Map<number, Queued<number>>()
      const pushed: Array<Queued<number>> = []
      const leave = (entry: Queued<number> | undefined): boolean => entry === undefined || waiting.delete(entry.item)
      for (const [atMs, step] of steps.entries()) {
        let isSound = true
        if (step.do === 'push') {
          const { entry, pushedOut } = queue.push(step.key, atMs, at(atMs, step.costMs))
          pushed.push(entry)
          waiting.set(atMs, entry)
          isSound = waiting.size > maxQueued === (pushedOut !== undefined)
          if (pushedOut !== undefined) isSound &&= isOldestOfLongest(pushedOut, [...waiting.values()])
          leave(pushedOut)
        } else if (step.do === 'take') {
          const canRun = (key: string): boolean => !step.blocked.includes(key)
          const entry = queue.take(canRun, step.newest ? 'newest' : 'oldest')
          const could = [...waiting.values()].some(({ key }) => canRun(key))
          isSound = leave(entry) && could === (entry !== undefined) && (entry === undefined || canRun(entry.key))
        } else if (step.do === 'remove') {
          const entry = pushed[step.index]
          if (entry !== undefined) isSound = queue.remove(entry) === waiting.delete(entry.item)
        } else {
          const isOver = (entry: Queued<number>): boolean => entry.atMs < atMs - step.age
          isSound = queue.removeWhere(isOver).every(leave) && ![...waiting.values()].some(isOver)
        }
        const left = [...waiting.values()]
        const sizes = ['a', 'b', 'c', 'd'].every((key) => queue.sizeOf(key) === left.filter((entry) => entry.key === key).length)
        const oldest = left.length === 0 ? undefined : Math.min(...left.map(({ atMs }) => atMs))
        if (!isSound || !sizes || queue.size !== left.length || queue.size > maxQueued || queue.oldestAtMs !== oldest)
          return false
      }
      return drain(queue).every((item) => waiting.delete(item)) && waiting.size === 0
    }),
  )
})

t.test('between keys that always wait, what is served differs by at most one entry of each', async () => {
  const costs = fc.array(fc.double({ min: 0.1, max: 100, noNaN: true }), { minLength: 50, maxLength: 50 })
  fc.assert(
    fc.property(fc.array(costs, { minLength: 2, maxLength: 5 }), (costsOf) => {
      const queue = new FairQueue<number>(1000)
      for (const [key, costs] of costsOf.entries()) for (const costMs of costs) queue.push(String(key), key, at(0, costMs))
      const served = costsOf.map(() => 0)
      const most = costsOf.map((costs) => Math.max(...costs))
      while (costsOf.every((_, key) => queue.sizeOf(String(key)) > 1)) {
        const entry = queue.take(ALL, 'oldest')!
        served[entry.item]! += entry.costMs
        for (const [a, ofA] of served.entries()) {
          for (const [b, ofB] of served.entries()) if (Math.abs(ofA - ofB) > most[a]! + most[b]! + 1e-6) return false
        }
      }
      return true
    }),
  )
})

t.test('a key that comes rarely waits for at most one entry of each other key', async () => {
  const floods = fc.array(fc.double({ min: 0.1, max: 200, noNaN: true }), { minLength: 1, maxLength: 6 })
  fc.assert(
    fc.property(floods, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 10 }), (costs, pauses) => {
      const queue = new FairQueue<string>(1e5)
      for (const [key, costMs] of costs.entries()) for (let n = 0; n < 500; n++) queue.push(`flood${key}`, 'flood', at(n, costMs))
      for (const pause of pauses) {
        // By then the others have been served what its own last entry cost.
        for (let n = 0; n < pause + costs.length; n++) queue.take(ALL, 'newest')
        queue.push('rare', 'rare', at(1000, 0.1))
        let before = 0
        while (queue.take(ALL, 'oldest')?.item === 'flood') before++
        if (before > costs.length) return false
      }
      return true
    }),
  )
})

t.test('keys that are gone leave nothing behind', async (t) => {
  const queue = new FairQueue<number>(10)
  queue.push('always', 0, at(0))
  for (let n = 0; n < 5000; n++) {
    queue.push(`once${n}`, n, at(n, 5))
    queue.push('always', n, at(n, 5))
    queue.take(ALL, 'oldest')
    queue.take(ALL, 'oldest')
    if (queue.rememberedFlows > 4) return t.fail(`${queue.rememberedFlows} keys are remembered after ${n}`)
  }
  drain(queue)
  t.equal(queue.rememberedFlows, 0)
})

t.test('owners come first: twenty keys of one are served as much as one of another', async (t) => {
  const queue = new FairQueue<string>(10_000)
  for (let n = 0; n < 20; n++) {
    for (let key = 0; key < 20; key++) queue.push(`many${key}`, 'many', { ...at(n), owner: 'many' })
    for (let count = 0; count < 20; count++) queue.push('one', 'one', { ...at(n), owner: 'one' })
  }
  const first = drain(queue).slice(0, 400)
  t.equal(first.filter((item) => item === 'one').length, 200)
})

t.test('a full queue lets go of the owner with the most, and of the key of these with the most', async (t) => {
  const queue = new FairQueue<string>(8)
  const push = (key: string, owner: string, n: number) => queue.push(key, `${key}-${n}`, { ...at(n), owner })
  for (let n = 0; n < 5; n++) push(`many${n % 3}`, 'many', n)
  for (let n = 0; n < 3; n++) push('one', 'one', n)
  t.equal(push('one', 'one', 3).pushedOut?.item, 'many0-0', 'the one has most of all keys, but its owner less than the other')
  t.equal(push('one', 'one', 4).pushedOut?.item, 'one-0', 'now it has more')
})

t.test('who has less waiting than its part is below its share, and who is alone is not', async (t) => {
  const queue = new FairQueue<string>(100)
  const alone = queue.push('a', 'a', { ...at(0), owner: 'x' }).entry
  t.notOk(queue.isBelowShare(alone))
  const other = queue.push('b', 'b', { ...at(0, 3), owner: 'y' }).entry
  t.ok(queue.isBelowShare(alone))
  t.notOk(queue.isBelowShare(other))
  const small = queue.push('c', 'c', { ...at(0), owner: 'y' }).entry
  t.ok(queue.isBelowShare(small), 'its owner has the most, but not it')
  t.notOk(queue.isBelowShare(other))
  queue.push('a', 'newer', { ...at(1), owner: 'x' })
  queue.take((key) => key === 'a', 'newest')
  t.notOk(queue.isBelowShare(alone), 'what came later was served before it')
})

t.test('what a full queue lets go is always of an owner with the most, and of a key of these with the most', async () => {
  const pushes = fc.array(fc.record({ owner: fc.nat(3), key: fc.nat(4), takes: fc.boolean() }), { maxLength: 200, size: 'max' })
  fc.assert(
    fc.property(pushes, fc.integer({ min: 0, max: 20 }), (pushes, maxQueued) => {
      const queue = new FairQueue<number>(maxQueued)
      const waiting = new Set<Queued<number>>()
      const count = (is: (entry: Queued<number>) => boolean): number => [...waiting].filter(is).length
      for (const [n, { owner, key, takes }] of pushes.entries()) {
        const { entry, pushedOut } = queue.push(`${owner}-${key}`, n, { ...at(n), owner: `${owner}` })
        waiting.add(entry)
        if (pushedOut !== undefined) {
          const ofOwner = (name: string): number => count((one) => one.owner === name)
          const ofKey = (name: string): number => count((one) => one.key === name)
          const others = [...waiting].filter((one) => one.owner === pushedOut.owner)
          if ([...waiting].some((one) => ofOwner(one.owner) > ofOwner(pushedOut.owner))) return false
          if (others.some((one) => ofKey(one.key) > ofKey(pushedOut.key))) return false
          waiting.delete(pushedOut)
        }
        const taken = takes ? queue.take(ALL, 'oldest') : undefined
        if (taken !== undefined) waiting.delete(taken)
      }
      return queue.size === waiting.size
    }),
  )
})
