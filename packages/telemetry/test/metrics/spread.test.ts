import fc from 'fast-check'
import t from 'tap'
import { spreadOf } from '../../src/metrics/spread.ts'

t.test('mean and population standard deviation', async (t) => {
  t.strictSame(spreadOf([2, 4, 4, 4, 5, 5, 7, 9]), { mean: 5, stddev: 2 })
  t.strictSame(spreadOf([7]), { mean: 7, stddev: 0 })
  t.strictSame(spreadOf([]), { mean: 0, stddev: 0 })
})

t.test('counts of years that differ by little', async (t) => {
  t.strictSame(spreadOf([1e15, 1e15 + 2]), { mean: 1e15 + 1, stddev: 1 })
})

t.test('whatever the counts, the spread is within their range, and grows with them', async () => {
  fc.assert(
    fc.property(fc.array(fc.nat(1_000_000), { minLength: 1 }), fc.integer({ min: 2, max: 9 }), (counts, factor) => {
      const { mean, stddev } = spreadOf(counts)
      const range = Math.max(...counts) - Math.min(...counts)
      const multiple = spreadOf(counts.map((count) => count * factor))
      const isNear = (a: number, b: number): boolean => Math.abs(a - b) <= 1e-6 * (1 + Math.abs(b))
      return (
        mean >= Math.min(...counts) - 1e-6 &&
        mean <= Math.max(...counts) + 1e-6 &&
        stddev <= range / 2 + 1e-6 &&
        stddev > 0 === range > 0 &&
        isNear(multiple.stddev, factor * stddev)
      )
    }),
  )
})
