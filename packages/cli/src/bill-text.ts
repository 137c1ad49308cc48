import { formatPrice, formatUsd, type Bill, type RateCard } from '@carpool/billing'
import type { UsageGroup, UsageTotals } from '@carpool/core'
import type { Writable } from 'node:stream'
import { renderTable, type Column } from './table.ts'
import { formatDuration, formatQuantity, formatShare } from './units.ts'
import { waitedUs } from './usage-text.ts'

/** The bill of one function, owner or hour. */
export interface KeyedBill {
  readonly key: string
  readonly bill: Bill
}

/** One bill under each of several cards. */
export function renderComparison(bills: readonly Bill[], stream: Writable): string {
  return renderTable([{ title: 'CARD', text: ({ card }) => card }, ...sums<Bill>((bill) => bill)], bills, stream)
}

/** What each row costs under each of several cards. */
export function renderComparisonRows(
  by: UsageGroup,
  rows: ReadonlyArray<{ readonly key: string; readonly bills: readonly Bill[] }>,
  stream: Writable,
): string {
  const cards = rows[0]?.bills.map(({ card }) => card) ?? []
  const columns = cards.map((card, index): Column<(typeof rows)[number]> => {
    return { title: card, align: 'right', text: ({ bills }) => formatUsd(bills[index]?.total ?? 0) }
  })
  return renderTable([{ title: by.toUpperCase(), text: ({ key }) => key }, ...columns], rows, stream)
}

/** What was used, whatever it costs. */
export function renderUsed(total: UsageTotals): string {
  const cpuUs = total.cpuUs + total.initCpuUs + total.backgroundCpuUs
  const calls = total.invocations === 1 ? '1 call' : `${total.invocations} calls`
  return `${calls} used ${formatDuration(cpuUs)} of CPU and waited for ${formatDuration(waitedUs(total))}.`
}

/** The lines of one bill, with what they add up to. */
export function renderLines({ lines, total, waiting }: Bill, stream: Writable): string {
  const texts = lines.map((line) => [
    line.name,
    formatQuantity(line.quantity),
    line.unit,
    formatPrice(line.price),
    formatUsd(line.amount),
    formatUsd(line.waiting),
  ])
  const titles = ['LINE', 'QUANTITY', 'UNIT', 'PRICE', 'AMOUNT', 'WAITING'] as const
  const columns = titles.map((title, index): Column<readonly string[]> => {
    return { title, align: title === 'LINE' || title === 'UNIT' ? 'left' : 'right', text: (row) => row[index] ?? '' }
  })
  return renderTable(columns, [...texts, ['total', '', '', '', formatUsd(total), formatUsd(waiting)]], stream)
}

/** What each row costs under one card. */
export function renderBills(by: UsageGroup, rows: readonly KeyedBill[], stream: Writable): string {
  return renderTable([{ title: by.toUpperCase(), text: ({ key }) => key }, ...sums<KeyedBill>(({ bill }) => bill)], rows, stream)
}

/** Where the prices of a card come from, and what it does not charge. */
export function renderOrigin({ title, prices, leftOut }: RateCard): string {
  const sources = new Set(prices.map(({ source, asOf }) => `Prices as of ${asOf}: ${source}`))
  const unchecked = prices.filter(({ checked }) => !checked).map(({ name }) => name)
  return [
    title,
    ...sources,
    ...(unchecked.length > 0 ? [`Not read in their source itself: the prices of ${unchecked.join(', ')}.`] : []),
    ...leftOut.map((text) => `Left out: ${text}`),
  ].join('\n')
}

function sums<Row>(billOf: (row: Row) => Bill): Column<Row>[] {
  return [
    { title: 'TOTAL', align: 'right', text: (row) => formatUsd(billOf(row).total) },
    { title: 'OF IT WAITING', align: 'right', text: (row) => formatUsd(billOf(row).waiting) },
    { title: 'SHARE', align: 'right', text: (row) => formatShare(billOf(row).waiting, billOf(row).total) },
  ]
}
