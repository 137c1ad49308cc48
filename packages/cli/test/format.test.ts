import fc from 'fast-check'
import t from 'tap'
import { formatBytes, formatDuration, formatQuantity, formatShare } from '../src/format.ts'

t.test('times are written in the unit that fits them', async (t) => {
  const cases: [us: number, text: string][] = [
    [0, '0 ms'],
    [1, '0.001 ms'],
    [812, '0.812 ms'],
    [12_345, '12.3 ms'],
    [999_499, '999 ms'],
    [999_999, '1 s'],
    [2_041_000, '2.04 s'],
    [59_999_999, '1 min'],
    [90_000_000, '1.5 min'],
    [3_600_000_000, '1 h'],
    [7_200_000_000_000, '2000 h'],
  ]
  for (const [us, text] of cases) t.equal(formatDuration(us), text)
})

t.test('sizes are written in the unit that fits them', async (t) => {
  const cases: [bytes: number, text: string][] = [
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1 KiB'],
    [1536, '1.5 KiB'],
    [1023.4 * 1024, '1023 KiB'],
    [1024 * 1024 - 1, '1 MiB'],
    [12_595 * 1024, '12.3 MiB'],
    [1024 ** 4, '1 TiB'],
    [5000 * 1024 ** 4, '5000 TiB'],
  ]
  for (const [bytes, text] of cases) t.equal(formatBytes(bytes), text)
})

t.test('a time is written within half a percent, whatever its size', async (t) => {
  const unitsUs: Record<string, number> = { ms: 1000, s: 1e6, min: 60e6, h: 3600e6 }
  fc.assert(
    fc.property(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (us) => {
      const [value = '', unit = ''] = formatDuration(us).split(' ')
      return Math.abs(Number(value) * (unitsUs[unit] ?? Number.NaN) - us) <= us * 0.0051
    }),
  )
  t.pass()
})

t.test('shares and quantities', async (t) => {
  t.equal(formatShare(1, 3), '33.3%')
  t.equal(formatShare(0, 0), '-')
  t.equal(formatQuantity(0.00001), '0.00001')
  t.equal(formatQuantity(123_456.7), '123,500')
})
