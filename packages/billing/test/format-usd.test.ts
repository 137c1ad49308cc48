import fc from 'fast-check'
import t from 'tap'
import { formatPrice, formatUsd, rateCard, RATE_CARD_NAMES } from '../src/index.ts'

t.test('an amount has cents, or the digits that tell it from nothing', async (t) => {
  const cases: [amount: number, text: string][] = [
    [0, '$0.00'],
    [1234.5, '$1,234.50'],
    [1, '$1.00'],
    [0.9999, '$1.00'],
    [0.5, '$0.50'],
    [0.128, '$0.128'],
    [0.01, '$0.01'],
    [0.000023, '$0.000023'],
    [0.000333667, '$0.000334'],
    [0.00000002, '$0.00000002'],
  ]
  for (const [amount, text] of cases) t.equal(formatUsd(amount), text)
})

t.test('an amount is told within half a percent, whatever its size', async (t) => {
  fc.assert(
    fc.property(fc.double({ min: 1e-12, max: 1e6, noNaN: true }), (amount) => {
      const shown = Number(formatUsd(amount).replaceAll(/[$,]/g, ''))
      return Math.abs(shown - amount) <= Math.max(amount, 1e-12) * 0.0051
    }),
  )
  t.pass()
})

t.test('a price keeps all its digits', async (t) => {
  t.equal(formatPrice(0.0000166667), '$0.0000166667')
  t.equal(formatPrice(0.2), '$0.20')
  for (const { usd } of RATE_CARD_NAMES.flatMap((name) => rateCard(name).prices)) t.equal(Number(formatPrice(usd).slice(1)), usd)
})
