import fc from 'fast-check'
import t from 'tap'
import { drawPicture, marks } from '../src/azure/picture.ts'
import { correlation, mean, thinned, trailingMean, type Point } from '../src/azure/series.ts'

const VALUES = fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 2, maxLength: 100 })
const points = (values: readonly number[]): Point[] => values.map((value, index) => ({ atMs: index * 250, value }))

t.test('a series is wholly correlated with itself, and with its mirror the other way', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -1e6, max: 1e6 }), { minLength: 2 }), (values) => {
      const self = correlation(values, values)
      const mirror = correlation(
        values,
        values.map((value) => -3 * value),
      )
      return self === undefined ? mirror === undefined : self > 0.999 && (mirror ?? 0) < -0.999
    }),
  )
  t.equal(correlation([2, 2, 2], [1, 2, 3]), undefined, 'nothing is correlated with what never changes')
  t.ok(Math.abs(correlation([1, 2, 3, 4], [1, -1, -1, 1]) ?? 1) < 1e-9)
})

t.test('a trailing mean looks back as far as its window, and no further', async (t) => {
  t.strictSame(
    trailingMean(points([4, 0, 8, 0]), 250).map(({ value }) => value),
    [4, 2, 4, 4],
  )
  fc.assert(
    fc.property(VALUES, fc.integer({ min: 0, max: 5000 }), (values, windowMs) => {
      const means = trailingMean(points(values), windowMs)
      return means.every(({ atMs, value }, index) => {
        const seen = points(values).filter((point, at) => at <= index && point.atMs >= atMs - windowMs)
        return Math.abs(value - mean(seen.map((point) => point.value))) < 1e-3
      })
    }),
  )
})

t.test('a thinned series has few points, in order and within the bounds of the series', async (t) => {
  fc.assert(
    fc.property(VALUES, fc.integer({ min: 1, max: 50 }), (values, count) => {
      const thin = thinned(points(values), count)
      const [least, most] = [Math.min(...values), Math.max(...values)]
      return (
        thin.length <= count &&
        thin.every(({ atMs }, index) => atMs > (thin[index - 1]?.atMs ?? -1)) &&
        thin.every(({ value }) => value >= least - 1e-6 && value <= most + 1e-6)
      )
    }),
  )
  t.strictSame(thinned(points([1, 2, 3]), 10), points([1, 2, 3]))
})

t.test('marks are round, evenly spaced, within the span and not too many', async (t) => {
  t.strictSame(marks(0, 2, 4), [0, 0.5, 1, 1.5, 2])
  t.strictSame(marks(0, 1, 10), [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1])
  t.strictSame(marks(0, 600, 10), [0, 100, 200, 300, 400, 500, 600])
  t.strictSame(marks(0, 0, 4), [0])
  fc.assert(
    fc.property(fc.double({ min: 1e-3, max: 1e6, noNaN: true }), fc.integer({ min: 1, max: 12 }), (to, most) => {
      const found = marks(0, to, most)
      return found.length >= 1 && found.length <= most + 1 && found.every((mark) => mark >= 0 && mark <= to * (1 + 1e-9))
    }),
  )
})

t.test('a picture holds a curve for each panel, inside its frame, and escapes its texts', async (t) => {
  fc.assert(
    fc.property(
      fc.array(
        VALUES.map((values) => values.map(Math.abs)),
        { minLength: 1, maxLength: 4 },
      ),
      (series) => {
        const panels = series.map((values, index) => ({
          title: `panel <${index}> & more`,
          points: points(values),
          color: '#123456',
          shape: index % 2 === 0 ? ('line' as const) : ('steps' as const),
        }))
        const svg = drawPicture({ title: 'title', caption: 'caption', panels })
        const curves = [...svg.matchAll(/<path d="(M[^"]+)" fill="none"/g)].map(([, path = '']) => path)
        const [, width = 0, height = 0] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg)?.map(Number) ?? []
        const inside = curves.every((path) =>
          [...path.matchAll(/([MLHV])(-?[\d.]+)(?: (-?[\d.]+))?/g)].every(([, command, first, second]) => {
            const isIn = (value: number, limit: number): boolean => value >= 0 && value <= limit
            if (command === 'H') return isIn(Number(first), width)
            if (command === 'V') return isIn(Number(first), height)
            return isIn(Number(first), width) && isIn(Number(second), height)
          }),
        )
        return (
          curves.length === panels.length && inside && !svg.includes('<0>') && !svg.includes('NaN') && svg.includes('&amp; more')
        )
      },
    ),
  )
  t.pass()
})
