import t, { type Test } from 'tap'
import { Prewarmer } from '../src/isolates/prewarmer.ts'

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
  const prewarmer = new Prewarmer(make, 2)
  prewarmer.open(64)
  await prewarmer.fill()
  t.strictSame(made, [64, 64])
  t.equal(await prewarmer.use(128, async ({ memoryLimitMb }) => memoryLimitMb), 128)
  await prewarmer.fill()
  t.strictSame(made, [64, 64, 128, 128, 128])
})

/** With two blanks; resolves when the third is made. */
async function filled(t: Test): Promise<{ prewarmer: Prewarmer<{ dispose(): void }>; third: Promise<number> }> {
  const keepsAlive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(keepsAlive))
  const third = Promise.withResolvers<number>()
  let count = 0
  const prewarmer = new Prewarmer(async () => {
    if (++count === 3) third.resolve(performance.now())
    return { dispose() {} }
  }, 2)
  prewarmer.open(64)
  await prewarmer.fill()
  return { prewarmer, third: third.promise }
}

t.test('the next blank is made when what was loaded into the one before has had time for a call', async (t) => {
  const { prewarmer, third } = await filled(t)
  const loadedMs = await prewarmer.use(64, async () => {
    await new Promise((resolve) => setTimeout(resolve, 25))
    return performance.now()
  })
  const afterMs = (await third) - loadedMs
  t.ok(afterMs >= 9, `after ${afterMs} ms`)
})

t.test('the next blank is made although what was loaded into the one before goes on for ever', async (t) => {
  const { prewarmer, third } = await filled(t)
  void prewarmer.use(64, () => new Promise(() => {}))
  await third
})

t.test('with no shelves every blank is made on demand', async (t) => {
  const { made, make } = counting()
  const prewarmer = new Prewarmer(make, 0)
  await prewarmer.use(64, async () => {})
  await prewarmer.fill()
  t.strictSame(made, [64])
})

t.test('the heap limit that was not asked for longest loses its shelf', async (t) => {
  const { make } = counting()
  const blanks: Array<{ memoryLimitMb: number; disposed: boolean }> = []
  const prewarmer = new Prewarmer(async (memoryLimitMb) => {
    const blank = await make(memoryLimitMb)
    blanks.push(blank)
    return blank
  }, 1)
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
