import fc from 'fast-check'
import t from 'tap'
import { RunDelayHistogram } from '../src/run-delay.ts'

t.test('percentiles are within a tenth of the exact ones, whatever the delays', async () => {
  const delays = fc.array(fc.oneof(fc.nat(20), fc.nat(60_000_000), fc.double({ min: 0, max: 5e4, noNaN: true })), {
    minLength: 1,
    maxLength: 300,
    size: 'max',
  })
  fc.assert(
    fc.property(delays, (delays) => {
      const histogram = new RunDelayHistogram()
      for (const us of delays) histogram.add(us)
      const summary = histogram.summary()
      const sorted = delays.map(Math.floor).toSorted((a, b) => a - b)
      const isNear = (foundUs: number, share: number): boolean => {
        const exactUs = sorted[Math.ceil(share * sorted.length) - 1]!
        return Math.abs(foundUs - exactUs) <= 0.1 * exactUs
      }
      return (
        summary.count === delays.length && isNear(summary.p50Us, 0.5) && isNear(summary.p90Us, 0.9) && isNear(summary.p99Us, 0.99)
      )
    }),
  )
})

t.test('what is no delay counts as none, and what is too long as a minute', async (t) => {
  const histogram = new RunDelayHistogram()
  for (const us of [-5, Number.NaN, -Infinity]) histogram.add(us)
  t.strictSame(histogram.summary(), { count: 3, p50Us: 0, p90Us: 0, p99Us: 0 })
  histogram.reset()
  for (const us of [1e9, Infinity, 2 ** 40]) histogram.add(us)
  t.ok(Math.abs(histogram.summary().p50Us - 6e7) <= 6e6)
})

t.test('empty at first and after a reset', async (t) => {
  const histogram = new RunDelayHistogram()
  const empty = { count: 0, p50Us: 0, p90Us: 0, p99Us: 0 }
  t.strictSame(histogram.summary(), empty)
  histogram.add(100)
  histogram.reset()
  t.strictSame(histogram.summary(), empty)
})
