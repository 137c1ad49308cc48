import fc from 'fast-check'
import t from 'tap'
import { StaySize } from '../src/scheduler/stay-size.ts'

const MS = 1_000_000

/** Runs stays of entries whose CPU times come one after the other; returns the stays as lists of those times. */
function staysOf(entryNs: () => number, stays: number): number[][] {
  const size = new StaySize()
  return Array.from({ length: stays }, () => {
    const entries = Array.from({ length: size.max }, entryNs)
    size.took(sum(entries), entries.length)
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
  const sizes = staysOf(() => 5_000, 9).map(({ length }) => length)
  t.strictSame(sizes, [1, 2, 4, 8, 16, 32, 64, 64, 64])
})

t.test('a stay that was not full says nothing about a larger one', async (t) => {
  const size = new StaySize()
  for (let stay = 0; stay < 4; stay++) size.took(5_000, 1)
  t.equal(size.max, 2)
})

t.test('after any stays there is room for 1 to 64 entries, at most twice as many as before', async () => {
  const stay = fc.tuple(fc.nat(1000 * MS), fc.double({ min: 0, max: 1, noNaN: true }))
  fc.assert(
    fc.property(fc.array(stay, { maxLength: 60, size: 'max' }), (stays) => {
      const size = new StaySize()
      for (const [cpuNs, fill] of stays) {
        const before = size.max
        size.took(cpuNs, Math.max(1, Math.round(before * fill)))
        if (!Number.isInteger(size.max) || size.max < 1 || size.max > 64 || size.max > 2 * before) return false
      }
      return true
    }),
  )
})

t.test('after a stay of more than 2 ms the next entry runs alone, whatever came before', async () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 20_000 }),
      fc.nat(20),
      fc.integer({ min: 2 * MS + 1, max: 1000 * MS }),
      (entryNs, stays, longNs) => {
        const size = new StaySize()
        for (let stay = 0; stay < stays; stay++) size.took(entryNs * size.max, size.max)
        size.took(longNs, size.max)
        return size.max === 1
      },
    ),
  )
})

t.test('entries that take more than a millisecond each run alone', async () => {
  fc.assert(
    fc.property(fc.integer({ min: MS + 1, max: 1000 * MS }), (entryNs) =>
      staysOf(() => entryNs, 20).every(({ length }) => length === 1),
    ),
  )
})

t.test('entries that all take the same share a stay of at most 1 ms, which is at least half full', async () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: MS }), (entryNs) => {
      const stays = staysOf(() => entryNs, 20)
      const lastNs = sum(stays.at(-1) ?? [])
      // Each stay but the first few is as large as the target allows.
      return stays.every((stay) => sum(stay) <= MS) && (lastNs > MS / 2 || stays.at(-1)?.length === 64)
    }),
  )
})

t.test('whatever ran before, the size comes to fit what runs now', async () => {
  const before = fc.array(fc.nat(1000 * MS), { maxLength: 20, size: 'max' })
  fc.assert(
    fc.property(before, fc.integer({ min: 1, max: MS }), (before, entryNs) => {
      let entry = 0
      const stays = staysOf(() => before[entry++] ?? entryNs, 200)
      const last = stays.at(-1) ?? []
      return sum(last) <= 1.05 * MS && (sum(last) > 0.45 * MS || last.length === 64)
    }),
  )
})

t.test('long entries among short ones leave the mean stay near 1 ms', async () => {
  const mix = fc.record({
    shortNs: fc.integer({ min: 1_000, max: 100_000 }),
    longNs: fc.integer({ min: 500_000, max: 3 * MS }),
    longShare: fc.double({ min: 0, max: 0.2, noNaN: true }),
    seed: fc.nat(),
  })
  fc.assert(
    fc.property(mix, ({ shortNs, longNs, longShare, seed }) => {
      const random = randomOf(seed)
      const stays = staysOf(() => (random() < longShare ? longNs : shortNs), 3000)
      return sum(stays.flat()) / stays.length <= 1.5 * MS
    }),
  )
})
