import fc from 'fast-check'
import t from 'tap'
import { addBills, METERS, priceUsage, rateCard, RATE_CARD_NAMES, sumUsage, type MeterName, type RateCard } from '../src/index.ts'
import { anyTotals, totals } from './fixtures/totals.ts'

/** Every meter at a price of its own. */
const EVERY_METER: RateCard = {
  name: 'every-meter',
  title: 'every meter',
  prices: Object.keys(METERS).map((meter, index) => ({
    name: meter,
    meter: meter as MeterName,
    divisor: 1000,
    unit: 'thousand',
    usd: index + 1,
    source: 'this test',
    asOf: '2026-01-01',
    checked: true,
  })),
  leftOut: [],
}

const CARDS = [...RATE_CARD_NAMES.map(rateCard), EVERY_METER]
const near = (a: number, b: number) => Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b))

t.test('the prices of rows add up to the price of their sum', async (t) => {
  fc.assert(
    fc.property(fc.constantFrom(...CARDS), fc.array(anyTotals, { maxLength: 8 }), (card, rows) => {
      const whole = priceUsage(card, sumUsage(rows))
      const parts = addBills(
        card,
        rows.map((row) => priceUsage(card, row)),
      )
      return (
        near(whole.total, parts.total) &&
        whole.lines.length === parts.lines.length &&
        whole.lines.every((line, index) => {
          const part = parts.lines[index]
          return part !== undefined && near(line.amount, part.amount) && near(line.quantity, part.quantity)
        })
      )
    }),
  )
  t.pass()
})

t.test('waiting is never less than nothing nor more than the amount', async (t) => {
  fc.assert(
    fc.property(fc.constantFrom(...CARDS), anyTotals, (card, usage) => {
      const bill = priceUsage(card, usage)
      const within = ({ amount, waiting }: { amount: number; waiting: number }) => waiting >= 0 && waiting <= amount
      return bill.lines.every(within) && within({ amount: bill.total, waiting: bill.waiting })
    }),
  )
  t.pass()
})

t.test('more CPU in the same time is never more waiting', async (t) => {
  fc.assert(
    fc.property(fc.constantFrom(...CARDS), anyTotals, fc.nat(), (card, usage, moreUs) => {
      const busier = { ...usage, cpuUs: usage.cpuUs + moreUs }
      return priceUsage(card, busier).waiting <= priceUsage(card, usage).waiting
    }),
  )
  t.pass()
})

t.test('every meter reads a field of its own, and only charges on time have waiting', async (t) => {
  for (const meter of Object.keys(METERS) as MeterName[]) {
    const field = meter === 'requests' ? 'invocations' : meter
    t.equal(METERS[meter].quantity(totals({ [field]: 7 })), 7, meter)
    t.equal('time' in METERS[meter], /^(exec|init1|instance)/.test(meter), meter)
  }
})

t.test('a charge on time is compared with the CPU that was used within that time', async (t) => {
  const usage = totals({ cpuUs: 1, initCpuUs: 20, backgroundCpuUs: 300, exec1Ms: 4, exec100Ms: 5, init1Ms: 6, instanceUs: 7 })
  const execution = { billedUs: 4000, cpuUs: 1 }
  const longExecution = { billedUs: 5000, cpuUs: 1 }
  const start = { billedUs: 6000, cpuUs: 20 }
  const instance = { billedUs: 7, cpuUs: 21 }
  t.strictSame(METERS.exec1Ms.time(usage), execution)
  t.strictSame(METERS.exec1MbMs.time(usage), execution)
  t.strictSame(METERS.exec100Ms.time(usage), longExecution)
  t.strictSame(METERS.exec100MbMs.time(usage), longExecution)
  t.strictSame(METERS.init1Ms.time(usage), start)
  t.strictSame(METERS.init1MbMs.time(usage), start)
  t.strictSame(METERS.instanceUs.time(usage), instance)
  t.strictSame(METERS.instanceMbMs.time(usage), instance)
})

t.test('a bill of nothing, and the sum of no bills, are nothing', async (t) => {
  for (const card of CARDS) {
    const nothing = priceUsage(card, sumUsage([]))
    t.match(nothing, { card: card.name, currency: 'USD', total: 0, waiting: 0 })
    t.same(addBills(card, []), nothing)
  }
})

t.test('totals add up, and the memory peak is the largest', async (t) => {
  const sum = sumUsage([totals({ invocations: 1, memoryPeakKb: 5 }), totals({ invocations: 2, memoryPeakKb: 3 })])
  t.strictSame(sum, totals({ invocations: 3, memoryPeakKb: 5 }))
})
