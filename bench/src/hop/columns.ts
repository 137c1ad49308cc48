import { percent } from '../lib/quantities.ts'
import type { Column } from '../lib/table.ts'
import type { Attribution, FunctionShare } from './attribution.ts'
import { budgetSums, type Cost } from './costs.ts'
import { BUDGETS, type BudgetName, type ProcessName } from './stages.ts'
import type { ThreadFigures } from './totals.ts'

/** What was measured of one checkout. */
export interface CheckoutResult {
  readonly name: string
  readonly commit: string
  /** Requests per second of each round. */
  readonly rates: readonly number[]
  readonly threads: readonly ThreadFigures[]
  readonly costs: readonly Cost[]
}

/** A row has the figures of all checkouts, in their order. */
interface CostRow {
  readonly process: string
  readonly name: string
  readonly figures: ReadonlyArray<{ readonly microsPerCall: number; readonly share: number }>
}

/** Each stage and thread, and what they come to. */
export function costRows(results: readonly CheckoutResult[]): CostRow[] {
  const [first] = results
  const rows = (first?.costs ?? []).map(({ process, name }, index) => ({
    process,
    name,
    figures: results.map(({ costs }) => costs[index]!),
  }))
  const sums = results.map(({ costs }) => budgetSums(costs))
  const totals = results.map(({ costs }) => costs.reduce((sum, { microsPerCall }) => sum + microsPerCall, 0))
  const sumRow = (name: string, of: (index: number) => number): CostRow => ({
    process: 'sum',
    name,
    figures: results.map((_, index) => ({ microsPerCall: of(index), share: of(index) / (totals[index] ?? 0) })),
  })
  return [
    ...rows,
    ...(Object.keys(BUDGETS) as BudgetName[]).map((name) => sumRow(name, (index) => sums[index]?.[name] ?? 0)),
    sumRow('all', (index) => totals[index] ?? 0),
  ]
}

export function costColumns(results: readonly CheckoutResult[]): ReadonlyArray<Column<CostRow>> {
  return [
    { title: 'process', align: 'left', text: ({ process }) => process },
    { title: 'stage', align: 'left', text: ({ name }) => name },
    ...results.flatMap(({ name }, index) => [
      { title: `${name}, µs per call`, text: ({ figures }: CostRow) => (figures[index]?.microsPerCall ?? 0).toFixed(2) },
      { title: 'share', text: ({ figures }: CostRow) => percent(figures[index]?.share ?? 0) },
    ]),
  ]
}

interface ThreadRow {
  readonly process: ProcessName
  readonly role: string
  readonly figures: readonly ThreadFigures[]
}

export function threadRows(results: readonly CheckoutResult[]): ThreadRow[] {
  const [first] = results
  return (first?.threads ?? []).map(({ process, role }, index) => ({
    process,
    role,
    figures: results.map(({ threads }) => threads[index]!),
  }))
}

export function threadColumns(results: readonly CheckoutResult[]): ReadonlyArray<Column<ThreadRow>> {
  return [
    { title: 'process', align: 'left', text: ({ process }) => process },
    { title: 'threads', align: 'left', text: ({ role }) => role },
    ...results.flatMap(({ name }, index) => [
      { title: `${name}, µs per call`, text: ({ figures }: ThreadRow) => (figures[index]?.microsPerCall ?? 0).toFixed(2) },
      { title: 'wake-ups', text: ({ figures }: ThreadRow) => (figures[index]?.wakeUpsPerCall ?? 0).toFixed(3) },
      { title: 'preempted', text: ({ figures }: ThreadRow) => (figures[index]?.preemptionsPerCall ?? 0).toFixed(3) },
    ]),
  ]
}

export const rateColumns: ReadonlyArray<Column<CheckoutResult>> = [
  { title: 'checkout', align: 'left', text: ({ name }) => name },
  { title: 'commit', align: 'left', text: ({ commit }) => commit },
  { title: 'requests per second, round by round', text: ({ rates }) => rates.map((rate) => Math.round(rate)).join(' ') },
]

interface FunctionRow extends FunctionShare {
  readonly process: ProcessName
  readonly microsPerCall: number
}

/** The functions of the main threads with the longest times of their own. */
export function functionRows(
  threads: readonly ThreadFigures[],
  profiles: Readonly<Record<ProcessName, Attribution>>,
  count: number,
): FunctionRow[] {
  return threads
    .filter(({ role }) => role === 'main')
    .flatMap(({ process, microsPerCall }) =>
      profiles[process].functions
        .slice(0, count)
        .map((shared) => ({ process, ...shared, microsPerCall: microsPerCall * shared.share })),
    )
}

export const functionColumns: ReadonlyArray<Column<FunctionRow>> = [
  { title: 'process', align: 'left', text: ({ process }) => process },
  { title: 'stage', align: 'left', text: ({ stage }) => stage },
  { title: 'function', align: 'left', text: ({ functionName }) => functionName || '(anonymous)' },
  { title: 'file', align: 'left', text: ({ file }) => file },
  { title: 'µs per call', text: ({ microsPerCall }) => microsPerCall.toFixed(2) },
]
