import fc from 'fast-check'
import t from 'tap'
import { decideRelief, MemoryWatch, NO_PRESSURE, type MemorySample, type ReliefDecision } from '../src/limits/memory.ts'
import { MB } from './support/fake-pool.ts'

const CALM: MemorySample = {
  atMs: 0,
  rssBytes: 500 * MB,
  budgetBytes: 1000 * MB,
  availableBytes: 8000 * MB,
  totalBytes: 16_000 * MB,
  evictableBytes: 300 * MB,
}

/** What is decided on samples that come one after the other. */
function decisionsOn(samples: ReadonlyArray<Partial<MemorySample>>): ReliefDecision[] {
  let memory = NO_PRESSURE
  return samples.map((sample) => {
    const next = decideRelief({ ...CALM, ...sample }, memory)
    memory = next.memory
    return next.decision
  })
}

const givenUpMbOn = (samples: ReadonlyArray<Partial<MemorySample>>): number[] =>
  decisionsOn(samples).map(({ giveUpBytes }) => Math.round(giveUpBytes / MB))

const mb = (min: number, max: number): fc.Arbitrary<number> => fc.integer({ min, max }).map((value) => value * MB)
const histories: fc.Arbitrary<MemorySample[]> = fc
  .record({
    budgetBytes: fc.constantFrom(0, 1000 * MB),
    totalBytes: fc.constantFrom(0, 4000 * MB),
    moments: fc.array(
      fc.record({
        passedMs: fc.integer({ min: 1, max: 3000 }),
        rssBytes: fc.oneof(mb(900, 1100), mb(100, 2000)),
        availableBytes: fc.oneof(mb(300, 600), mb(0, 4000)),
        evictableBytes: fc.oneof(fc.constant(0), mb(0, 500)),
      }),
      { minLength: 1, maxLength: 40, size: 'max' },
    ),
  })
  .map(({ budgetBytes, totalBytes, moments }) => {
    let atMs = 0
    return moments.map(({ passedMs, ...rest }) => ({ ...rest, budgetBytes, totalBytes, atMs: (atMs += passedMs) }))
  })

t.test('nothing is given up without pressure, nor more than there is, nor more than it takes', async () => {
  fc.assert(
    fc.property(histories, (samples) =>
      decisionsOn(samples).every(({ giveUpBytes, pressure }, index) => {
        const { rssBytes, budgetBytes, availableBytes, totalBytes, evictableBytes } = samples[index] ?? CALM
        const overBytes = budgetBytes > 0 ? Math.max(0, rssBytes - 0.95 * budgetBytes) : 0
        const lackBytes = Math.max(0, 0.12 * totalBytes - availableBytes)
        return (
          giveUpBytes >= 0 &&
          giveUpBytes <= evictableBytes &&
          giveUpBytes <= Math.max(overBytes, lackBytes) + 1 &&
          (pressure !== 'none' || giveUpBytes === 0)
        )
      }),
    ),
  )
})

t.test('a second passes between two evictions, whatever happens', async () => {
  fc.assert(
    fc.property(histories, (samples) => {
      const times = decisionsOn(samples).flatMap(({ giveUpBytes }, index) => (giveUpBytes > 0 ? [samples[index]?.atMs ?? 0] : []))
      return times.every((time, index) => index === 0 || time - (times[index - 1] ?? 0) >= 1000)
    }),
  )
})

t.test('pressure begins at its marks only, and that there is nothing left is said once each time', async () => {
  fc.assert(
    fc.property(histories, (samples) => {
      let before: ReliefDecision['pressure'] = 'none'
      let isTold = false
      return decisionsOn(samples).every(({ pressure, isHelpless }, index) => {
        const { rssBytes, budgetBytes, availableBytes, totalBytes } = samples[index] ?? CALM
        const isAtMark = (budgetBytes > 0 && rssBytes > budgetBytes) || availableBytes < 0.1 * totalBytes
        const isRight = (pressure !== 'none' || !isAtMark) && (before !== 'none' || pressure === 'none' || isAtMark)
        const isOnce = !isHelpless || (pressure !== 'none' && !isTold)
        isTold = pressure !== 'none' && (isTold || isHelpless)
        before = pressure
        return isRight && isOnce
      })
    }),
  )
})

t.test('above the budget as much is given up as leads to 95 % of it, and more only once that had time to show', async (t) => {
  const samples = [
    { atMs: 0, rssBytes: 1000 * MB },
    { atMs: 250, rssBytes: 1100 * MB },
    { atMs: 500, rssBytes: 1100 * MB },
    { atMs: 1249, rssBytes: 1020 * MB },
    { atMs: 1250, rssBytes: 1020 * MB },
    { atMs: 2250, rssBytes: 980 * MB },
    { atMs: 3250, rssBytes: 950 * MB },
    { atMs: 5000, rssBytes: 999 * MB },
  ]
  t.strictSame(givenUpMbOn(samples), [0, 150, 0, 0, 70, 30, 0, 0])
})

t.test('while RSS stands the pause doubles, up to 32 s; once it falls or grows it is a second again', async (t) => {
  let memory = NO_PRESSURE
  const evictedAtSecond: number[] = []
  const run = (fromSecond: number, toSecond: number, rssBytes: number): void => {
    for (let second = fromSecond; second < toSecond; second++) {
      const next = decideRelief({ ...CALM, atMs: second * 1000, rssBytes }, memory)
      memory = next.memory
      if (next.decision.giveUpBytes > 0) evictedAtSecond.push(second)
    }
  }
  run(0, 120, 1100 * MB)
  t.strictSame(evictedAtSecond.splice(0), [0, 1, 3, 7, 15, 31, 63, 95])
  run(120, 130, 1200 * MB)
  t.strictSame(evictedAtSecond.splice(0), [127, 128], 'the pause that was begun ends first')
  run(130, 133, 1060 * MB)
  t.strictSame(evictedAtSecond, [130, 131])
})

t.test('below the budget it ends once it does not help, and begins anew above the budget only', async (t) => {
  const samples = [
    { atMs: 0, rssBytes: 1010 * MB },
    { atMs: 500, rssBytes: 990 * MB },
    { atMs: 1000, rssBytes: 990 * MB },
    { atMs: 2000, rssBytes: 990 * MB },
    { atMs: 3000, rssBytes: 1005 * MB },
    { atMs: 4000, rssBytes: 1005 * MB },
    { atMs: 5000, rssBytes: 1005 * MB },
  ]
  t.strictSame(givenUpMbOn(samples), [60, 0, 0, 0, 55, 0, 55])
})

t.test('once the pressure is over, what was learned is forgotten', async (t) => {
  const samples = [1100, 1100, 1100, 900, 1100, 1100].map((rssMb, second) => ({ atMs: second * 1000, rssBytes: rssMb * MB }))
  t.strictSame(givenUpMbOn(samples), [150, 150, 0, 0, 150, 150])
})

t.test('a host gives up its share of what the machine lacks, so that several together do not give up too much', async (t) => {
  const machine = { budgetBytes: 0, totalBytes: 8000 * MB }
  const short = { ...machine, rssBytes: 1850 * MB, availableBytes: 600 * MB }
  t.strictSame(givenUpMbOn([{ ...machine, availableBytes: 800 * MB }, short]), [0, 90])
  const [decision] = decisionsOn([short])
  t.equal(decision?.pressure, 'machine')
  t.strictSame(
    givenUpMbOn([short, { ...short, atMs: 1000, rssBytes: 1760 * MB, availableBytes: 900 * MB }]),
    [90, 15],
    'until 12 % are there',
  )
})

t.test('with nothing idle, or all of it given up in vain, that is said once', async (t) => {
  const over = { rssBytes: 1200 * MB }
  const none = { ...over, evictableBytes: 0 }
  const saidOn = (samples: ReadonlyArray<Partial<MemorySample>>): boolean[] =>
    decisionsOn(samples).map(({ isHelpless }) => isHelpless)
  t.strictSame(saidOn([none, { ...none, atMs: 250 }, { ...none, atMs: 60_000 }]), [true, false, false])
  t.strictSame(
    saidOn([
      { ...over, evictableBytes: MB },
      { ...none, atMs: 500 },
      { ...over, atMs: 1000 },
      { ...none, atMs: 9000 },
    ]),
    [false, false, true, false],
  )
  t.strictSame(saidOn([none, { atMs: 5000 }, { ...none, atMs: 6000 }]), [true, false, true], 'again when the pressure had ended')
})

t.test('without a budget and without a known machine there is no pressure', async (t) => {
  t.strictSame(givenUpMbOn([{ budgetBytes: 0, totalBytes: 0, availableBytes: 0, rssBytes: 1e12 }]), [0])
})

t.test('garbage is collected before a size counts, for a tenth of the CPU, and no more once it is full without', async (t) => {
  const watch = new MemoryWatch()
  watch.limitBytes = 100 * MB
  t.ok(watch.mayCollect(0), 'the first time')
  watch.collected(1000, 20, 50 * MB)
  t.notOk(watch.isFull)
  t.notOk(watch.mayCollect(1199), 'not before the isolate has used ten times what it took')
  t.ok(watch.mayCollect(1200))
  watch.collected(1200, 20, 79 * MB)
  t.ok(watch.mayCollect(1200 + 7), 'soon where it grows so fast that it would be full')
  watch.collected(1300, 20, 79 * MB)
  t.notOk(watch.mayCollect(1499), 'but not where it does not grow, however little is left')
  watch.collected(1500, 20, 80 * MB)
  t.ok(watch.isFull)
  t.notOk(watch.mayCollect(1_000_000))
})

t.test('to collect garbage takes a fifth of the CPU at most, whatever share of its limit is none', async () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 100, max: 799 }),
      fc.integer({ min: 10, max: 100 }),
      fc.array(fc.integer({ min: -20, max: 20 }), { minLength: 1, maxLength: 20 }),
      (liveMb, tookMs, noise) => {
        const watch = new MemoryWatch()
        watch.limitBytes = 1000 * MB
        let [usedMs, collectedMs] = [1000, 0]
        for (let look = 0; look < 1000; look++) {
          usedMs += 20
          if (!watch.mayCollect(usedMs * 1e6)) continue
          usedMs += tookMs
          collectedMs += tookMs
          // It is near its limit with garbage each time, and without goes up and down by 2 MB.
          const leftMb = Math.min(799.9, liveMb + (noise[look % noise.length] ?? 0) / 10)
          watch.collected(usedMs * 1e6, tookMs * 1e6, leftMb * MB)
        }
        return collectedMs <= 0.2 * usedMs
      },
    ),
  )
})

t.test('the size is measured by CPU, by time, and by the pace at which it grows', async (t) => {
  const watch = new MemoryWatch()
  watch.limitBytes = 64 * MB
  /** After how much CPU, in µs, it is measured again once it was found to hold so many MB. */
  const dueUsAfter = (heldMb: number): number => {
    watch.record(heldMb * MB, 0)
    let us = 1
    while (!watch.isDue(1000, 1)) us++
    return us
  }
  t.same([30, 30, 30, 30, 30, 30, 30, 30].map(dueUsAfter), [500, 1000, 2000, 4000, 8000, 16_000, 20_000, 20_000])
  t.same([40, 52, 63].map(dueUsAfter), [20_000, 10_000, 500], 'half of the way to its limit, but not all the time')
  t.same([20, 20].map(dueUsAfter), [1000, 2000], 'where garbage is gone it may be filled again')
  watch.record(20 * MB, 1)
  t.same([watch.isDue(0, 1000), watch.isDue(0, 1001)], [false, true], 'each second')
})
