import { addBills, formatUsd, priceUsage, rateCard, RATE_CARD_NAMES, sumUsage, type Bill } from '@carpool/billing'
import { renderTable, type Column } from '../lib/table.ts'
import type { Measurement } from './measurement.ts'

export const BILL_COLUMNS: ReadonlyArray<Column<Bill>> = [
  { title: 'card', align: 'left', text: ({ card }) => card },
  { title: 'charges', text: ({ total }) => formatUsd(total) },
  { title: 'of it for waiting', text: ({ waiting }) => formatUsd(waiting) },
  { title: 'share', text: ({ total, waiting }) => `${total === 0 ? 0 : ((100 * waiting) / total).toFixed(1)} %` },
]

/** What each rate card charges for the calls of a measurement, as they stand in the ledger. */
export function billsOf({ recorded = [] }: Measurement): Bill[] {
  return RATE_CARD_NAMES.map(rateCard).map((card) =>
    addBills(
      card,
      recorded.map((row) => priceUsage(card, row)),
    ),
  )
}

/** The same as a table, with what was used. */
export function billOf(measurement: Measurement, form: 'plain' | 'markdown'): string {
  const { calls, recorded = [] } = measurement
  const bills = billsOf(measurement)
  const { cpuUs, initCpuUs, backgroundCpuUs, wallUs, invocations } = sumUsage(recorded)
  const seconds = (us: number): string => `${(us / 1e6).toFixed(3)} s`
  return [
    `The bill of Carpool's ${calls} calls: ${invocations} records, ${seconds(wallUs)} of wall time, ${seconds(cpuUs + initCpuUs + backgroundCpuUs)} of CPU.`,
    renderTable(BILL_COLUMNS, bills, form),
  ].join('\n\n')
}
