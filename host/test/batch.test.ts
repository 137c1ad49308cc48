import fc from 'fast-check'
import t from 'tap'
import { runs } from '../../test/support/form.ts'
import { Account } from '../src/accounting/account.ts'
import { Batch, BatchCost, BatchSize } from '../src/scheduler/batch.ts'

t.test('a clock of entries says what each has used and which runs, and nothing while none does', async (t) => {
  const [first, second, third] = [new Account(), new Account(), new Account()]
  const batch = new Batch([first, second, third], 0)
  batch.measured([])
  t.same([batch.usedNs, batch.current], [[0, 0, 0], first])
  batch.measured([30, 4.6])
  t.same([batch.usedNs, batch.current, batch.currentNs, batch.totalNs], [[30, 5, 0], second, 5, 35])
  batch.measured([])
  t.same([batch.usedNs, batch.current], [[30, 5, 0], second])
  batch.measured([30, 8, 2, 1000])
  t.same([batch.usedNs, batch.current], [[30, 8, 2], third])
  const other = new Batch([first, second, third], 0)
  other.measured(new Float64Array([30, 8, 2]), 2)
  t.same([other.usedNs, other.current], [[30, 8, 0], second], 'only as many count as have begun')
})

t.test('a charge takes what was not charged yet, from each account its own', async (t) => {
  const [mine, other] = [new Account(), new Account()]
  const batch = new Batch([mine, other, mine], 0)
  batch.measured([10, 20])
  batch.charge()
  batch.charge()
  t.same([mine.cpuNs, other.cpuNs], [10, 20])
  batch.measured([10, 25, 7])
  t.same([batch.unchargedNs(mine), batch.unchargedNs(other), batch.unchargedNs(new Account())], [7, 5, 0])
  batch.charge()
  t.same([mine.cpuNs, other.cpuNs, batch.totalNs], [17, 25, 42])
})

t.test('what was charged too high is not given back', async (t) => {
  const account = new Account()
  const batch = new Batch([account], 0)
  batch.measured([100])
  batch.charge()
  batch.measured([60])
  batch.charge()
  t.equal(account.cpuNs, 100)
  batch.measured([110])
  batch.charge()
  t.equal(account.cpuNs, 110)
})

t.test('an account that has its answer is charged through the one in its place', async (t) => {
  const [account, background] = [new Account(), new Account()]
  const batch = new Batch([account], 0)
  batch.measured([10])
  batch.charge()
  account.close(background)
  batch.measured([15])
  batch.charge()
  t.same([account.cpuNs, background.cpuNs], [10, 5])
})

t.test('a cap keeps the bill of an account down to a limit, with what it used before the batch', async (t) => {
  const [first, second] = [new Account(), new Account()]
  second.charge(30e6)
  const batch = new Batch([first, second], 0)
  batch.measured([200e6, 200e6])
  batch.cap(100, false)
  t.same(batch.usedNs, [200e6, 70e6])
  batch.charge()
  t.same([first.cpuNs, second.cpuNs], [200e6, 100e6])
})

t.test('a cap counts what was charged early, and takes nothing back', async (t) => {
  for (const [earlyMs, billedMs] of [
    [20, 100],
    [150, 150],
  ] as const) {
    const account = new Account()
    const batch = new Batch([account], 0)
    batch.measured([earlyMs * 1e6])
    batch.charge()
    batch.measured([300e6])
    batch.cap(100, false)
    batch.charge()
    t.same([account.cpuNs, batch.totalNs], [billedMs * 1e6, billedMs * 1e6])
  }
})

t.test(
  'a cap of an entry leaves out what the account used before the batch, but not what was charged for it early',
  async (t) => {
    const account = new Account()
    account.charge(500e6)
    const batch = new Batch([account], 0)
    batch.measured([40e6])
    batch.charge()
    batch.measured([300e6])
    batch.cap(100, true)
    batch.charge()
    t.same([account.cpuNs, batch.totalNs], [600e6, 100e6])
  },
)

t.test('a cap above what was used changes nothing', async (t) => {
  for (const ofEntry of [true, false]) {
    const batch = new Batch([new Account()], 0)
    batch.measured([30e6])
    batch.cap(100, ofEntry)
    t.same(batch.usedNs, [30e6])
  }
})

t.test('a cap counts what other entries of the account used in the batch', async (t) => {
  const [mine, other] = [new Account(), new Account()]
  const batch = new Batch([mine, other, mine], 0)
  batch.measured([40e6, 10e6, 200e6])
  batch.cap(150, false)
  batch.charge()
  t.same([mine.cpuNs, other.cpuNs], [150e6, 10e6])
})

const MS = 1_000_000

/** Runs batches of entries whose CPU times come one after the other; returns the batches as lists of those times. */
function batchesOf(entryNs: () => number, batches: number): number[][] {
  const size = new BatchSize()
  return Array.from({ length: batches }, () => {
    const entries = Array.from({ length: size.max }, entryNs)
    size.record(sum(entries), entries.length)
    return entries
  })
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0)
}

/** Numbers from 0 to 1, the same for the same seed: the generator of Park and Miller. */
function randomOf(seed: number): () => number {
  let state = (seed % 2_147_483_646) + 1
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647
}

t.test('it begins with one entry, and doubles to 64 while entries are short', async (t) => {
  const sizes = batchesOf(() => 5_000, 9).map(({ length }) => length)
  t.strictSame(sizes, [1, 2, 4, 8, 16, 32, 64, 64, 64])
})

t.test('a batch that was not full says nothing about a larger one', async (t) => {
  const size = new BatchSize()
  for (let batch = 0; batch < 4; batch++) size.record(5_000, 1)
  t.equal(size.max, 2)
})

t.test('after any batches there is room for 1 to 64 entries, at most twice as many as before', async () => {
  const batch = fc.tuple(fc.nat(1000 * MS), fc.double({ min: 0, max: 1, noNaN: true }))
  fc.assert(
    fc.property(fc.array(batch, { maxLength: 60, size: 'max' }), (batches) => {
      const size = new BatchSize()
      for (const [cpuNs, fill] of batches) {
        const before = size.max
        size.record(cpuNs, Math.max(1, Math.round(before * fill)))
        if (!Number.isInteger(size.max) || size.max < 1 || size.max > 64 || size.max > 2 * before) return false
      }
      return true
    }),
  )
})

t.test('after a batch of more than 2 ms the next entry runs alone, whatever came before', async () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 20_000 }),
      fc.nat(20),
      fc.integer({ min: 2 * MS + 1, max: 1000 * MS }),
      (entryNs, batches, longNs) => {
        const size = new BatchSize()
        for (let batch = 0; batch < batches; batch++) size.record(entryNs * size.max, size.max)
        size.record(longNs, size.max)
        return size.max === 1
      },
    ),
  )
})

t.test('entries that take more than a millisecond each run alone', async () => {
  fc.assert(
    fc.property(fc.integer({ min: MS + 1, max: 1000 * MS }), (entryNs) =>
      batchesOf(() => entryNs, 20).every(({ length }) => length === 1),
    ),
  )
})

t.test('entries that all take the same share a batch of at most 1 ms, which is at least half full', async () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: MS }), (entryNs) => {
      const batches = batchesOf(() => entryNs, 20)
      const lastNs = sum(batches.at(-1) ?? [])
      // Each batch but the first few is as large as the target allows.
      return batches.every((batch) => sum(batch) <= MS) && (lastNs > MS / 2 || batches.at(-1)?.length === 64)
    }),
  )
})

t.test('whatever ran before, the size comes to fit what runs now', async () => {
  const before = fc.array(fc.nat(1000 * MS), { maxLength: 20, size: 'max' })
  fc.assert(
    fc.property(before, fc.integer({ min: 1, max: MS }), (before, entryNs) => {
      let entry = 0
      const batches = batchesOf(() => before[entry++] ?? entryNs, 200)
      const last = batches.at(-1) ?? []
      return sum(last) <= 1.05 * MS && (sum(last) > 0.45 * MS || last.length === 64)
    }),
  )
})

t.test('long entries among short ones leave the mean batch near 1 ms', async () => {
  const mix = fc.record({
    shortNs: fc.integer({ min: 1_000, max: 100_000 }),
    longNs: fc.integer({ min: 500_000, max: 3 * MS }),
    longShare: fc.double({ min: 0, max: 0.2, noNaN: true }),
    seed: fc.nat(),
  })
  fc.assert(
    fc.property(mix, ({ shortNs, longNs, longShare, seed }) => {
      const random = randomOf(seed)
      const batches = batchesOf(() => (random() < longShare ? longNs : shortNs), 3000)
      return batches.reduce((total, batch) => total + sum(batch), 0) / batches.length <= 1.5 * MS
    }),
    { numRuns: runs(100) },
  )
})

t.test('what is usual of a function is what its last batches took, and the most fades', async (t) => {
  const cost = new BatchCost()
  t.ok(cost.usualMs > 0 && cost.usualMs <= 1, 'it is taken for short before it has run')
  for (let batch = 0; batch < 10; batch++) cost.record(100)
  t.ok(cost.usualMs > 99)
  t.equal(cost.mostMs, 100)
  for (let batch = 0; batch < 100; batch++) cost.record(1)
  t.ok(cost.usualMs < 1.1)
  t.ok(cost.mostMs < 2, String(cost.mostMs))
})
