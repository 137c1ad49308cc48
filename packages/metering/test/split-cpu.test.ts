import fc from 'fast-check'
import t from 'tap'
import { splitCpu } from '../src/index.ts'

const totals = fc.nat(2 ** 31 - 1).chain((low) => fc.nat(1000).map((high) => high * 2 ** 31 + low))
const times = fc.nat(10_000_000_000)
const unusable = fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1, -Number.MIN_VALUE)

const isSplitOf = (totalNs: number, count: number, parts: readonly number[]): boolean =>
  parts.length === count &&
  parts.every((part) => Number.isSafeInteger(part) && part >= 0) &&
  parts.reduce((sum, part) => sum + part, 0) === totalNs

t.test('the parts are whole, not negative, and add up to the total exactly', async () => {
  fc.assert(
    fc.property(totals, fc.array(times, { minLength: 1, maxLength: 64 }), (totalNs, spans) =>
      isSplitOf(totalNs, spans.length, splitCpu(totalNs, spans.length, spans)),
    ),
  )
})

t.test('each part is in proportion to its span, but for the rounding', async () => {
  fc.assert(
    fc.property(totals, fc.array(times, { minLength: 2, maxLength: 64 }), (totalNs, spans) => {
      const whole = spans.reduce((sum, span) => sum + span, 0)
      fc.pre(whole > 0)
      return splitCpu(totalNs, spans.length, spans).every((part, index) => {
        const exact = (totalNs / whole) * (spans[index] ?? 0)
        return Math.abs(part - exact) <= 1.01
      })
    }),
  )
})

t.test('spans that are too few, too many or not usable give equal parts', async () => {
  const spans = fc.oneof(
    fc.array(times, { maxLength: 130 }),
    fc.array(fc.oneof(times, unusable), { minLength: 1, maxLength: 64 }),
    fc.array(fc.constant(0), { maxLength: 64 }),
  )
  fc.assert(
    fc.property(totals, fc.integer({ min: 1, max: 64 }), spans, (totalNs, count, spans) => {
      const parts = splitCpu(totalNs, count, spans)
      if (!isSplitOf(totalNs, count, parts)) return false
      const areUsable =
        spans.length === count && spans.every((span) => span >= 0 && span < Infinity) && spans.some((span) => span > 0)
      return areUsable || Math.max(...parts) - Math.min(...parts) <= 1
    }),
  )
})

t.test('without spans the parts are equal', async (t) => {
  t.strictSame(splitCpu(9, 3), [3, 3, 3])
  t.strictSame(splitCpu(0, 3), [0, 0, 0])
  t.strictSame(splitCpu(7, 1), [7])
  t.strictSame(splitCpu(1000, 3, [1, 0, 3]), [250, 0, 750])
})

t.test('also spans that are tiny or huge add up', async () => {
  const spans = fc.array(fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 64 })
  const examples: [[number, number[]]] = [[10, [Number.MAX_VALUE, Number.MAX_VALUE]]]
  fc.assert(
    fc.property(totals, spans, (totalNs, spans) => isSplitOf(totalNs, spans.length, splitCpu(totalNs, spans.length, spans))),
    { examples },
  )
})
