import { NOBODY } from '@carpool/core'
import t, { type Test } from 'tap'
import { Prewarmer, type MakeBlank } from '../src/isolates/prewarmer.ts'

function counting(): {
  made: number[]
  make: (memoryLimitMb: number) => Promise<{ memoryLimitMb: number; disposed: boolean; dispose(): void }>
} {
  const made: number[] = []
  const make = async (memoryLimitMb: number) => {
    made.push(memoryLimitMb)
    return {
      memoryLimitMb,
      disposed: false,
      dispose() {
        this.disposed = true
      },
    }
  }
  return { made, make }
}

t.test('shelves are filled for every heap limit in use', async (t) => {
  const { made, make } = counting()
  const prewarmer = new Prewarmer(make, 2, 1, () => false)
  prewarmer.open(64)
  await prewarmer.fill()
  t.strictSame(made, [64, 64])
  t.equal(await prewarmer.use(128, NOBODY, async ({ memoryLimitMb }) => memoryLimitMb), 128)
  await prewarmer.fill()
  t.strictSame(made, [64, 64, 128, 128, 128])
})

interface Filled {
  readonly prewarmer: Prewarmer<{ dispose(): void }>
  /** Resolves when the third blank is made. */
  readonly third: Promise<void>
  /** How many are made. */
  readonly count: () => number
}

/** With two blanks, in a host that is busy as often as it is asked first. */
async function filled(t: Test, { busyTimes }: { busyTimes: number }): Promise<Filled> {
  const keepsAlive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(keepsAlive))
  const third = Promise.withResolvers<void>()
  let count = 0
  const make = async () => {
    if (++count === 3) third.resolve()
    return { dispose() {} }
  }
  let asked = 0
  const prewarmer = new Prewarmer(make, 2, 1, () => {
    t.equal(count, 2, 'the next blank waits')
    return ++asked <= busyTimes
  })
  prewarmer.open(64)
  await prewarmer.fill()
  return { prewarmer, third: third.promise, count: () => count }
}

t.test('the next blank is made once nothing is loaded and nothing runs', async (t) => {
  const { prewarmer, third, count } = await filled(t, { busyTimes: 3 })
  await prewarmer.use(64, NOBODY, async () => {
    await new Promise((resolve) => setTimeout(resolve, 25))
    t.equal(count(), 2, 'not while something is loaded')
  })
  await third
})

t.test('the next blank is made although what was loaded into the one before goes on for ever', async (t) => {
  const { prewarmer, third } = await filled(t, { busyTimes: 0 })
  void prewarmer.use(64, NOBODY, () => new Promise(() => {}))
  await third
})

t.test('the next blank is made although something always runs', async (t) => {
  const { prewarmer, third } = await filled(t, { busyTimes: Number.POSITIVE_INFINITY })
  await prewarmer.use(64, NOBODY, async () => {})
  await third
})

t.test('with no shelves every blank is made on demand', async (t) => {
  const { made, make } = counting()
  const prewarmer = new Prewarmer(make, 0, 1, () => false)
  await prewarmer.use(64, NOBODY, async () => {})
  await prewarmer.fill()
  t.strictSame(made, [64])
})

t.test('the heap limit that was not asked for longest loses its shelf', async (t) => {
  const { make } = counting()
  const blanks: Array<{ memoryLimitMb: number; disposed: boolean }> = []
  const makeKept = async (memoryLimitMb: number) => {
    const blank = await make(memoryLimitMb)
    blanks.push(blank)
    return blank
  }
  const prewarmer = new Prewarmer(makeKept, 1, 1, () => false)
  for (const memoryLimitMb of [1, 2, 3, 4, 5]) {
    prewarmer.open(memoryLimitMb)
    await prewarmer.fill()
  }
  t.strictSame(
    blanks.map(({ memoryLimitMb, disposed }) => [memoryLimitMb, disposed]),
    [
      [1, true],
      [2, false],
      [3, false],
      [4, false],
      [5, false],
    ],
  )
})

t.test('a blank whose shelf has had to make room is disposed', async (t) => {
  const { promise: isMade, resolve: made } = Promise.withResolvers<void>()
  const disposed: number[] = []
  const prewarmer = new Prewarmer(
    async (memoryLimitMb) => {
      if (memoryLimitMb === 1) await isMade
      return { dispose: () => void disposed.push(memoryLimitMb) }
    },
    1,
    1,
    () => false,
  )
  prewarmer.open(1)
  const filled = prewarmer.fill()
  for (const memoryLimitMb of [2, 3, 4, 5]) prewarmer.open(memoryLimitMb)
  made()
  await filled
  t.strictSame(disposed, [1])
})

/** Blanks that the test finishes one by one, and for what each was begun. */
function byHand(): { begun: string[]; next: PromiseWithResolvers<void>[]; make: MakeBlank<{ dispose(): void }> } {
  const begun: string[] = []
  const next: PromiseWithResolvers<void>[] = []
  const make = async (_memoryLimitMb: number, isForLater: boolean) => {
    const one = Promise.withResolvers<void>()
    begun.push(isForLater ? 'later' : 'now')
    next.push(one)
    await one.promise
    return { dispose() {} }
  }
  return { begun, next, make }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

t.test('so many are made at a time, between owners in turns, and one that is not made gives its turn back', async (t) => {
  const { begun, next, make } = byHand()
  const prewarmer = new Prewarmer(make, 0, 2, () => false)
  const order: string[] = []
  const use = (owner: string, functionName: string) =>
    prewarmer
      .use(64, { owner, functionName }, async () => order.push(functionName))
      .catch((error: Error) => order.push(error.message))
  const all = ['a1', 'a2', 'a3', 'a4'].map((name) => use('a', name))
  all.push(use('b', 'b1'))
  await turn()
  t.equal(begun.length, 2, 'no more than two at a time')
  for (let index = 0; index < 5; index++) {
    if (index === 1) next[index]?.reject(new Error('not made'))
    else next[index]?.resolve()
    await turn()
    t.equal(begun.length, Math.min(5, index + 3))
  }
  await Promise.all(all)
  t.strictSame(order, ['a1', 'not made', 'b1', 'a3', 'a4'])
})

t.test('while functions wait for theirs none is made for later, and what is on the shelf is for who waits longest', async (t) => {
  const { begun, next, make } = byHand()
  const prewarmer = new Prewarmer(make, 2, 1, () => false)
  prewarmer.open(64)
  const filled = prewarmer.fill()
  const order: string[] = []
  const use = (functionName: string) => prewarmer.use(64, { owner: 'o', functionName }, async () => order.push(functionName))
  const waiting = [use('first'), use('second')]
  await turn()
  t.strictSame(begun, ['later', 'now'])
  next[0]?.resolve()
  await filled
  t.strictSame([order, begun], [[], ['later', 'now']])
  next[1]?.resolve()
  await Promise.all(waiting)
  t.strictSame(
    [order, begun],
    [
      ['first', 'second'],
      ['later', 'now'],
    ],
  )
})
