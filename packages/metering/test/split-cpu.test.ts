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

const isEqualSplitOf = (totalNs: number, count: number, parts: readonly number[]): boolean =>
  isSplitOf(totalNs, count, parts) && Math.max(...parts) - Math.min(...parts) <= 1

t.test('the parts are whole, not negative, and add up to the total exactly', async () => {
  fc.assert(
    fc.property(totals, fc.array(times, { minLength: 1, maxLength: 64, size: 'max' }), (totalNs, spans) =>
      isSplitOf(totalNs, spans.length, splitCpu(totalNs, spans.length, spans)),
    ),
  )
})

t.test('each part is in proportion to its span, but for the rounding', async () => {
  fc.assert(
    fc.property(totals, fc.array(times, { minLength: 2, maxLength: 64, size: 'max' }), (totalNs, spans) => {
      const whole = spans.reduce((sum, span) => sum + span, 0)
      fc.pre(whole > 0)
      return splitCpu(totalNs, spans.length, spans).every((part, index) => {
        const exact = (totalNs / whole) * (spans[index] ?? 0)
        return Math.abs(part - exact) <= 1.01
      })
    }),
  )
})

t.test('spans that are too few or too many give equal parts', async () => {
  fc.assert(
    fc.property(
      totals,
      fc.integer({ min: 1, max: 64 }),
      fc.array(times, { maxLength: 130, size: 'max' }),
      (totalNs, count, spans) => {
        fc.pre(spans.length !== count)
        return isEqualSplitOf(totalNs, count, splitCpu(totalNs, count, spans))
      },
    ),
  )
})

t.test('one span that is not usable gives equal parts', async () => {
  const spans = fc.array(times, { minLength: 1, maxLength: 64, size: 'max' })
  fc.assert(
    fc.property(totals, spans, unusable, fc.nat(63), (totalNs, spans, wrong, index) => {
      const given = spans.with(index % spans.length, wrong)
      return isEqualSplitOf(totalNs, spans.length, splitCpu(totalNs, spans.length, given))
    }),
  )
})

t.test('spans that are all 0 give equal parts', async () => {
  fc.assert(
    fc.property(totals, fc.integer({ min: 1, max: 64 }), (totalNs, count) =>
      isEqualSplitOf(totalNs, count, splitCpu(totalNs, count, Array<number>(count).fill(0))),
    ),
  )
})

t.test('without spans the parts are equal', async (t) => {
  t.strictSame(splitCpu(9, 3), [3, 3, 3])
  t.strictSame(splitCpu(0, 3), [0, 0, 0])
  t.strictSame(splitCpu(7, 1), [7])
  t.strictSame(splitCpu(1000, 3, [1, 0, 3]), [250, 0, 750])
})

t.test('also spans that are tiny or huge add up', async () => {
  const spans = fc.array(fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }), {
    minLength: 1,
    maxLength: 64,
    size: 'max',
  })
  const examples: [[number, number[]]] = [[10, [Number.MAX_VALUE, Number.MAX_VALUE]]]
  fc.assert(
    fc.property(totals, spans, (totalNs, spans) => isSplitOf(totalNs, spans.length, splitCpu(totalNs, spans.length, spans))),
    { examples },
  )
})
