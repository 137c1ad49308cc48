import { NO_TOTALS, type UsageTotals } from '@carpool/core'
import { METERS, type Meter, type MeterName } from './meter.ts'
import type { RateCard } from './rate-card.ts'

/** What one price of a card comes to. */
export interface BillLine {
  /** Name of the price. */
  readonly name: string
  readonly meter: MeterName
  /** In `unit`. */
  readonly quantity: number
  readonly unit: string
  /** Price of one unit, in US dollars. */
  readonly price: number
  /** In US dollars, not rounded. */
  readonly amount: number
  /** The part of `amount` that was charged for time in which the function used no CPU. */
  readonly waiting: number
}

/** What a card charges. Amounts are in US dollars and not rounded: a call may cost a millionth of a cent. */
export interface Bill {
  /** Name of the card. */
  readonly card: string
  readonly currency: 'USD'
  /** One for each price of the card, in its order. */
  readonly lines: readonly BillLine[]
  readonly total: number
  readonly waiting: number
}

/**
 * What a card charges for usage.
 *
 * - `amount` = price × quantity of the meter ÷ divisor. It is linear: the amounts of rows add up to the amount of their sum.
 * - `waiting` = `amount` × (1 − CPU time ÷ billed time), the factor kept within 0 and 1, for charges on time; the billed time
 *   includes what rounding up added. It is 0 for CPU time, requests and bytes. For charges on time × memory this takes CPU use as
 *   even over the row: in a row of functions with different memory limits it is an estimate. So price each function, and add with
 *   {@link addBills}.
 */
export function priceUsage(card: RateCard, totals: UsageTotals): Bill {
  const lines = card.prices.map(({ name, meter, divisor, unit, usd }) => {
    const quantity = METERS[meter].quantity(totals) / divisor
    const amount = quantity * usd
    return { name, meter, quantity, unit, price: usd, amount, waiting: amount * waitingShare(METERS[meter], totals) }
  })
  return billOf(card, lines)
}

/** The sum of bills of one card; of none it is a bill of nothing. */
export function addBills(card: RateCard, bills: readonly Bill[]): Bill {
  const lines = card.prices.map(({ name, meter, unit, usd }, index) => {
    const parts = bills.flatMap((bill) => bill.lines[index] ?? [])
    return {
      name,
      meter,
      quantity: sum(parts, ({ quantity }) => quantity),
      unit,
      price: usd,
      amount: sum(parts, ({ amount }) => amount),
      waiting: sum(parts, ({ waiting }) => waiting),
    }
  })
  return billOf(card, lines)
}

function billOf(card: RateCard, lines: readonly BillLine[]): Bill {
  return {
    card: card.name,
    currency: 'USD',
    lines,
    total: sum(lines, ({ amount }) => amount),
    waiting: sum(lines, ({ waiting }) => waiting),
  }
}

function waitingShare({ time }: Meter, totals: UsageTotals): number {
  if (time === undefined) return 0
  const { billedUs, cpuUs } = time(totals)
  return billedUs > 0 ? Math.min(1, Math.max(0, 1 - cpuUs / billedUs)) : 0
}

function sum<T>(items: readonly T[], read: (item: T) => number): number {
  return items.reduce((total, item) => total + read(item), 0)
}

const FIELDS = Object.keys(NO_TOTALS) as ReadonlyArray<keyof UsageTotals>

/** The totals of several rows together; of none all are 0. */
export function sumUsage(rows: readonly UsageTotals[]): UsageTotals {
  const total = { ...NO_TOTALS }
  for (const row of rows) for (const field of FIELDS) total[field] = combine(field, total[field], row[field])
  return total
}

function combine(field: keyof UsageTotals, before: number, value: number): number {
  return field === 'memoryPeakKb' ? Math.max(before, value) : before + value
}
