import type { Holder } from '@carpool/core'
import fc from 'fast-check'
import t from 'tap'
import { FairQueue, type Queued } from '../src/fair-queue.ts'

const ALL = () => true
const of = (functionName: string, owner = ''): Holder => ({ owner, functionName })
const at = (atMs: number, costMs = 1) => ({ atMs, costMs })
const itemsOf = <T>(entries: Iterable<Queued<T>>): T[] => Array.from(entries, ({ item }) => item)

function drain<T>(queue: FairQueue<T>): T[] {
  const taken: T[] = []
  for (let entry = queue.take(ALL, 'oldest'); entry !== undefined; entry = queue.take(ALL, 'oldest')) taken.push(entry.item)
  return taken
}

t.test('within a function the oldest or the newest leaves first', async (t) => {
  const queue = new FairQueue<number>(10)
  for (const item of [1, 2, 3]) queue.push(of('a'), item, at(item))
  t.match(queue.take(ALL, 'newest'), { functionName: 'a', item: 3, atMs: 3 })
  t.match(queue.take(ALL, 'oldest'), { functionName: 'a', item: 1, atMs: 1 })
  t.equal(queue.size, 1)
})

t.test('a function that cannot run is passed over, and does not catch up on it', async (t) => {
  const queue = new FairQueue<string>(100)
  for (let n = 0; n < 9; n++) for (const name of ['a', 'b']) queue.push(of(name), `${name}${n}`, at(n))
  const onlyB = (name: string): boolean => name === 'b'
  for (let n = 0; n < 5; n++) t.equal(queue.take(onlyB, 'oldest')?.functionName, 'b')
  t.equal(
    queue.take(() => false, 'oldest'),
    undefined,
  )
  t.strictSame(drain(queue).slice(0, 6), ['a0', 'b5', 'a1', 'b6', 'a2', 'b7'])
})

t.test('a full queue lets the longest waiting of the function with the most go', async (t) => {
  const queue = new FairQueue<string>(3)
  queue.push(of('flood'), 'f1', at(1))
  queue.push(of('flood'), 'f2', at(2))
  queue.push(of('calm'), 'c1', at(3))
  const { entry, pushedOut } = queue.push(of('calm'), 'c2', at(4))
  t.equal(pushedOut?.item, 'c1', 'of functions that have as many it is the one that pushes')
  t.equal(entry.item, 'c2')
  t.equal(queue.push(of('rare'), 'r1', at(5)).pushedOut?.item, 'f1')
  t.equal(queue.size, 3)
})

t.test('a function that comes anew goes behind those that are due already', async (t) => {
  const queue = new FairQueue<string>(100)
  for (let n = 0; n < 3; n++) for (const name of ['a', 'b']) queue.push(of(name), `${name}${n}`, at(n))
  for (let n = 0; n < 3; n++) queue.take(ALL, 'oldest')
  queue.push(of('c'), 'c0', at(3))
  t.strictSame(drain(queue), ['b1', 'c0', 'a2', 'b2'])
})

t.test('a function that sends one call after the other pays for each', async (t) => {
  const queue = new FairQueue<string>(1000)
  for (let n = 0; n < 500; n++) queue.push(of('many'), 'many', at(n))
  const served = { many: 0, single: 0 }
  queue.push(of('single'), 'single', at(0, 10))
  for (let n = 0; n < 300; n++) {
    const { item, costMs } = queue.take(ALL, 'oldest')!
    served[item as keyof typeof served] += costMs
    if (item === 'single') queue.push(of('single'), 'single', at(n, 10))
  }
  t.ok(Math.abs(served.many - served.single) <= 11, `${served.many} ms and ${served.single} ms`)
})

t.test('a queue of no places gives back what comes', async (t) => {
  const queue = new FairQueue<string>(0)
  const { entry, pushedOut } = queue.push(of('a'), 'a1', at(1))
  t.equal(pushedOut, entry)
  t.equal(queue.size, 0)
  t.equal(queue.oldestAtMs, undefined)
})

t.test('who has left cannot be taken, and leaves only once', async (t) => {
  const queue = new FairQueue<number>(10)
  const [one, two, three] = [1, 2, 3].map((item) => queue.push(of('a'), item, at(item)).entry)
  t.equal(queue.remove(two!), true)
  t.equal(queue.remove(two!), false)
  t.equal(queue.take(ALL, 'oldest'), one)
  t.equal(queue.remove(one!), false)
  t.equal(queue.take(ALL, 'oldest'), three)
  t.equal(queue.take(ALL, 'oldest'), undefined)
})

t.test('those whose wait is over leave, oldest first', async (t) => {
  const queue = new FairQueue<string>(10)
  queue.push(of('a'), 'a1', at(1))
  queue.push(of('b'), 'b2', at(2))
  queue.push(of('a'), 'a3', at(3))
  queue.push(of('b'), 'b9', at(9))
  t.strictSame(
    queue.removeWhere(({ atMs }) => atMs < 1),
    [],
  )
  t.strictSame(itemsOf(queue.removeWhere(({ atMs }) => atMs <= 3)), ['a1', 'b2', 'a3'])
  t.same([queue.sizeOf(of('a')), queue.sizeOf(of('b'))], [0, 1])
  t.equal(queue.oldestAtMs, 9)
})

t.test('a function that costs nothing, or no number, does not starve the others', async (t) => {
  for (const costMs of [0, -1, Number.NaN]) {
    const queue = new FairQueue<string>(1000)
    for (let n = 0; n < 200; n++) queue.push(of('free'), 'free', at(n, costMs))
    queue.push(of('paid'), 'paid', at(0, 1))
    queue.push(of('paid'), 'paid', at(0, 1))
    t.ok(drain(queue).lastIndexOf('paid') <= 60, `cost ${costMs}`)
  }
})

const names = fc.constantFrom('a', 'b', 'c', 'd')
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('push' as const), name: names, costMs: fc.double({ min: 0, max: 200 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('take' as const), blocked: fc.subarray(['a', 'b', 'c', 'd']), newest: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), index: fc.nat(100) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('expire' as const), age: fc.nat(30) }) },
)

function isOldestOfLongest({ functionName, item }: Queued<number>, waiting: ReadonlyArray<Queued<number>>): boolean {
  const itemsOfName = (name: string): number[] => waiting.filter((entry) => entry.functionName === name).map(({ item }) => item)
  const longest = Math.max(...waiting.map((entry) => itemsOfName(entry.functionName).length))
  return itemsOfName(functionName).length === longest && item === Math.min(...itemsOfName(functionName))
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
          const { entry, pushedOut } = queue.push(of(step.name), atMs, at(atMs, step.costMs))
          pushed.push(entry)
          waiting.set(atMs, entry)
          isSound = waiting.size > maxQueued === (pushedOut !== undefined)
          if (pushedOut !== undefined) isSound &&= isOldestOfLongest(pushedOut, [...waiting.values()])
          leave(pushedOut)
        } else if (step.do === 'take') {
          const canRun = (name: string): boolean => !step.blocked.includes(name)
          const entry = queue.take(canRun, step.newest ? 'newest' : 'oldest')
          const could = [...waiting.values()].some(({ functionName }) => canRun(functionName))
          isSound = leave(entry) && could === (entry !== undefined) && (entry === undefined || canRun(entry.functionName))
        } else if (step.do === 'remove') {
          const entry = pushed[step.index]
          if (entry !== undefined) isSound = queue.remove(entry) === waiting.delete(entry.item)
        } else {
          const isOver = (entry: Queued<number>): boolean => entry.atMs < atMs - step.age
          isSound = queue.removeWhere(isOver).every(leave) && ![...waiting.values()].some(isOver)
        }
        const left = [...waiting.values()]
        const sizes = ['a', 'b', 'c', 'd'].every(
          (name) => queue.sizeOf(of(name)) === left.filter(({ functionName }) => functionName === name).length,
        )
        const oldest = left.length === 0 ? undefined : Math.min(...left.map(({ atMs }) => atMs))
        if (!isSound || !sizes || queue.size !== left.length || queue.size > maxQueued || queue.oldestAtMs !== oldest)
          return false
      }
      return drain(queue).every((item) => waiting.delete(item)) && waiting.size === 0
    }),
  )
})

t.test('between functions that always wait, what is served differs by at most one entry of each', async () => {
  const costs = fc.array(fc.double({ min: 0.1, max: 100, noNaN: true }), { minLength: 50, maxLength: 50 })
  fc.assert(
    fc.property(fc.array(costs, { minLength: 2, maxLength: 5 }), (costsOf) => {
      const queue = new FairQueue<number>(1000)
      for (const [index, costs] of costsOf.entries()) {
        for (const costMs of costs) queue.push(of(String(index)), index, at(0, costMs))
      }
      const served = costsOf.map(() => 0)
      const most = costsOf.map((costs) => Math.max(...costs))
      while (costsOf.every((_, index) => queue.sizeOf(of(String(index))) > 1)) {
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

t.test('a function that comes rarely waits for at most one entry of each other function', async () => {
  const floods = fc.array(fc.double({ min: 0.1, max: 200, noNaN: true }), { minLength: 1, maxLength: 6 })
  fc.assert(
    fc.property(floods, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 10 }), (costs, pauses) => {
      const queue = new FairQueue<string>(1e5)
      for (const [index, costMs] of costs.entries()) {
        for (let n = 0; n < 500; n++) queue.push(of(`flood${index}`), 'flood', at(n, costMs))
      }
      for (const pause of pauses) {
        // By then the others have been served what its own last entry cost.
        for (let n = 0; n < pause + costs.length; n++) queue.take(ALL, 'newest')
        queue.push(of('rare'), 'rare', at(1000, 0.1))
        let before = 0
        while (queue.take(ALL, 'oldest')?.item === 'flood') before++
        if (before > costs.length) return false
      }
      return true
    }),
  )
})

t.test('functions that are gone leave nothing behind', async (t) => {
  const queue = new FairQueue<number>(10)
  queue.push(of('always'), 0, at(0))
  for (let n = 0; n < 5000; n++) {
    queue.push(of(`once${n}`), n, at(n, 5))
    queue.push(of('always'), n, at(n, 5))
    queue.take(ALL, 'oldest')
    queue.take(ALL, 'oldest')
    if (queue.rememberedFlows > 4) return t.fail(`${queue.rememberedFlows} functions are remembered after ${n}`)
  }
  drain(queue)
  t.equal(queue.rememberedFlows, 0)
})

t.test('owners come first: twenty functions of one are served as much as one of another', async (t) => {
  const queue = new FairQueue<string>(10_000)
  for (let n = 0; n < 20; n++) {
    for (let name = 0; name < 20; name++) queue.push(of(`many${name}`, 'many'), 'many', at(n))
    for (let count = 0; count < 20; count++) queue.push(of('one', 'one'), 'one', at(n))
  }
  const first = drain(queue).slice(0, 400)
  t.equal(first.filter((item) => item === 'one').length, 200)
})

t.test('a full queue lets go of the owner with the most, and of the function of these with the most', async (t) => {
  const queue = new FairQueue<string>(8)
  const push = (name: string, owner: string, n: number) => queue.push(of(name, owner), `${name}-${n}`, at(n))
  for (let n = 0; n < 5; n++) push(`many${n % 3}`, 'many', n)
  for (let n = 0; n < 3; n++) push('one', 'one', n)
  t.equal(push('one', 'one', 3).pushedOut?.item, 'many0-0', 'its owner has less than the other, though it has the most')
  t.equal(push('one', 'one', 4).pushedOut?.item, 'one-0', 'now it has more')
})

t.test('who has less waiting than its part is below its share, and who is alone is not', async (t) => {
  const queue = new FairQueue<string>(100)
  const alone = queue.push(of('a', 'x'), 'a', at(0)).entry
  t.notOk(queue.isBelowShare(alone))
  const other = queue.push(of('b', 'y'), 'b', at(0, 3)).entry
  t.ok(queue.isBelowShare(alone))
  t.notOk(queue.isBelowShare(other))
  const small = queue.push(of('c', 'y'), 'c', at(0)).entry
  t.ok(queue.isBelowShare(small), 'its owner has the most, but not it')
  t.notOk(queue.isBelowShare(other))
  queue.push(of('a', 'x'), 'newer', at(1))
  queue.take((name) => name === 'a', 'newest')
  t.notOk(queue.isBelowShare(alone), 'what came later was served before it')
})

t.test('what a full queue lets go is always of an owner with the most, and of a function of these with the most', async () => {
  const pushes = fc.array(fc.record({ owner: fc.nat(3), name: fc.nat(4), takes: fc.boolean() }), { maxLength: 200, size: 'max' })
  fc.assert(
    fc.property(pushes, fc.integer({ min: 0, max: 20 }), (pushes, maxQueued) => {
      const queue = new FairQueue<number>(maxQueued)
      const waiting = new Set<Queued<number>>()
      const count = (is: (entry: Queued<number>) => boolean): number => [...waiting].filter(is).length
      for (const [n, { owner, name, takes }] of pushes.entries()) {
        const { entry, pushedOut } = queue.push(of(`${owner}-${name}`, `${owner}`), n, at(n))
        waiting.add(entry)
        if (pushedOut !== undefined) {
          const ofOwner = (name: string): number => count((one) => one.owner === name)
          const ofFunction = (name: string): number => count((one) => one.functionName === name)
          const others = [...waiting].filter((one) => one.owner === pushedOut.owner)
          if ([...waiting].some((one) => ofOwner(one.owner) > ofOwner(pushedOut.owner))) return false
          if (others.some((one) => ofFunction(one.functionName) > ofFunction(pushedOut.functionName))) return false
          waiting.delete(pushedOut)
        }
        const taken = takes ? queue.take(ALL, 'oldest') : undefined
        if (taken !== undefined) waiting.delete(taken)
      }
      return queue.size === waiting.size
    }),
  )
})
