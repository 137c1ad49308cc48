import fc from 'fast-check'
import t from 'tap'
import { median, percentile } from '../src/lib/statistics.ts'
import { measureSteadiness } from '../src/lib/steadiness.ts'

const NUMBERS = fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 200 })

t.test('the median is the middle value, or the mean of the two middle ones', async (t) => {
  t.equal(median([3]), 3)
  t.equal(median([9, 1, 5]), 5)
  t.equal(median([4, 1, 3, 2]), 2.5)
})

t.test('a percentile by nearest rank is one of the values', async (t) => {
  const values = [15, 20, 35, 40, 50]
  t.strictSame(
    [0, 5, 30, 40, 50, 100].map((percent) => percentile(values, percent)),
    [15, 15, 20, 20, 35, 50],
  )
  const hundred = Array.from({ length: 100 }, (_, index) => index + 1)
  t.strictSame(
    [1, 7, 29, 57, 99].map((percent) => percentile(hundred, percent)),
    [1, 7, 29, 57, 99],
    'with no rank lost or won by rounding',
  )
})

t.test('at least the given share of the values do not exceed a percentile, and no smaller value has that', async (t) => {
  fc.assert(
    fc.property(NUMBERS, fc.integer({ min: 1, max: 100 }), (values, percent) => {
      const found = percentile(values, percent)
      const shareUpTo = (limit: number): number => values.filter((value) => value <= limit).length * 100
      const smaller = values.filter((value) => value < found)
      return (
        values.includes(found) &&
        shareUpTo(found) >= percent * values.length &&
        smaller.every((value) => shareUpTo(value) < percent * values.length)
      )
    }),
  )
  t.pass()
})

t.test('the order of the values does not matter, and they are left as they are', async (t) => {
  fc.assert(
    fc.property(NUMBERS, (values) => {
      const before = [...values]
      const reversed = values.toReversed()
      const same = median(values) === median(reversed) && percentile(values, 95) === percentile(reversed, 95)
      return same && values.every((value, index) => Object.is(value, before[index]))
    }),
  )
  t.pass()
})

t.test('no values, or a percentage that is none, are refused', async (t) => {
  t.throws(() => median([]), RangeError)
  t.throws(() => percentile([], 50), RangeError)
  for (const percent of [-1, 101, Number.NaN]) t.throws(() => percentile([1], percent), RangeError)
})

t.test('how long the same work takes is measured for a while', async (t) => {
  const { usualMs, p95Ms, p99Ms } = await measureSteadiness(100)
  t.ok(usualMs > 0.5 && usualMs <= p95Ms && p95Ms <= p99Ms)
})
