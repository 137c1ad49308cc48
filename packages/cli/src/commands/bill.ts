import {
  addBills,
  isRateCardName,
  priceUsage,
  RATE_CARD_NAMES,
  rateCard,
  readRateCard,
  sumUsage,
  type Bill,
  type RateCard,
} from '@carpool/billing'
import type { UsageGroup, UsageRow } from '@carpool/core'
import { InvalidArgumentError } from 'commander'
import { renderBills, renderComparison, renderComparisonRows, renderLines, renderOrigin, renderUsed } from '../bill-text.ts'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import { addGroupOption, type GroupOption } from '../group-option.ts'
import { addSinceOption, type SinceOption } from '../since-option.ts'
import type { Call, Verb } from '../verb.ts'

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

export const bill: Verb<BillOptions> = {
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
