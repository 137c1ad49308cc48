import {
  addBills,
  type Bill,
  formatPrice,
  formatUsd,
  isRateCardName,
  priceUsage,
  RATE_CARD_NAMES,
  rateCard,
  type RateCard,
  readRateCard,
  sumUsage,
} from '@carpool/billing'
import type { UsageGroup, UsageRow, UsageTotals } from '@carpool/core'
import { InvalidArgumentError } from 'commander'
import type { Writable } from 'node:stream'
import type { Call, CliCommand } from '../command.ts'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connect.ts'
import { type Column, formatDuration, formatQuantity, formatShare, renderTable } from '../format.ts'
import { addGroupOption, addSinceOption, type GroupOption, type SinceOption } from '../options.ts'
import { waitedUs } from './usage.ts'

interface BillOptions extends ConnectionOptions, GroupOption, SinceOption {
  /** Name of a card, or path of a file. */
  readonly card?: string
}

/** What was used: always by function, which is what the totals are made of, and in the rows that were asked for. */
interface Usage {
  readonly functions: readonly UsageRow[]
  readonly by: UsageGroup
  readonly rows: readonly UsageRow[]
}

export const bill: CliCommand<BillOptions> = {
  define(command) {
    command.option('--card <name or file>', `one card in detail: ${RATE_CARD_NAMES.join(', ')}, or a JSON file`, cardOption)
    addGroupOption(command, 'also what each function, owner or hour costs (with --card by default: function)')
    addSinceOption(command, 'only what was used since then')
    addConnectionOptions(command)
    command.addHelpText(
      'after',
      '\nWhat was used here, at the prices of others, in US dollars. WAITING is the part charged for time without CPU use.' +
        '\nFree tiers, minimum charges, network and idle instances are left out; --card says more.',
    )
  },

  async run(call) {
    const { card: cardName, by, since, ...options } = call.options
    const card = cardName === undefined ? undefined : cardOf(cardName)
    const client = connect(options, call)
    const query = (group: UsageGroup) => client.usage({ by: group, ...(since !== undefined && { sinceMs: since }) })
    const functions = await query('function')
    const rows = by === undefined || by === 'function' ? functions : await query(by)
    if (card !== undefined) printBill(call, card, { functions, by: by ?? 'function', rows })
    else printComparison(call, { functions, by: by ?? 'function', rows: by === undefined ? [] : rows })
  },
}

function printBill({ io, output }: Call<BillOptions>, card: RateCard, { functions, by, rows }: Usage): void {
  const bill = totalOf(card, functions)
  const keyed = rows.map((row) => ({ key: row.key, bill: priceUsage(card, row) }))
  const total = sumUsage(functions)
  const parts = [
    renderLines(bill, io.stdout),
    ...(keyed.length > 0 ? [renderBills(by, keyed, io.stdout)] : []),
    `${renderUsed(total)}\n${renderOrigin(card)}`,
  ]
  output.answer({ card, bill, rows: keyed, usage: total }, parts.join('\n\n'))
}

function printComparison({ io, output }: Call<BillOptions>, { functions, by, rows }: Usage): void {
  const cards = RATE_CARD_NAMES.map(rateCard)
  const bills = cards.map((card) => totalOf(card, functions))
  const keyed = rows.map((row) => ({ key: row.key, bills: cards.map((card) => priceUsage(card, row)) }))
  const total = sumUsage(functions)
  const parts = [
    renderComparison(bills, io.stdout),
    ...(keyed.length > 0 ? [renderComparisonRows(by, keyed, io.stdout)] : []),
    renderUsed(total),
  ]
  output.answer({ bills, rows: keyed, usage: total }, parts.join('\n\n'))
}

function totalOf(card: RateCard, functions: readonly UsageRow[]): Bill {
  return addBills(
    card,
    functions.map((row) => priceUsage(card, row)),
  )
}

function cardOf(nameOrFile: string): RateCard {
  return isRateCardName(nameOrFile) ? rateCard(nameOrFile) : readRateCard(nameOrFile)
}

function cardOption(text: string): string {
  if (isRateCardName(text) || /[/\\]|\.json$/i.test(text)) return text
  throw new InvalidArgumentError(`It must be one of ${RATE_CARD_NAMES.join(', ')}, or the path of a .json file.`)
}

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
