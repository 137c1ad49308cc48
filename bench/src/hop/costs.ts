import type { Attribution } from './attribution.ts'
import { BUDGETS, budgetOf, type BudgetName, type ProcessName } from './stages.ts'
import type { ThreadFigures } from './totals.ts'

/** What one stage, or the threads of one role, take of a call. */
export interface Cost {
  readonly process: ProcessName
  /** The stage of a main thread, or what other threads are. */
  readonly name: string
  /** What it counts to. */
  readonly budget: BudgetName
  readonly microsPerCall: number
  /** Of the CPU time of all threads together. */
  readonly share: number
}

/** Divides the main threads' time among their stages; that of other threads is taken as it is. */
export function costsOf(threads: readonly ThreadFigures[], profiles: Readonly<Record<ProcessName, Attribution>>): Cost[] {
  const total = threads.reduce((sum, { microsPerCall }) => sum + microsPerCall, 0)
  return threads.flatMap(({ process, role, microsPerCall }) => {
    const parts = role === 'main' ? Object.entries(profiles[process].stages) : [[`thread: ${role}`, 1] as const]
    return parts.map(([name, part]) => ({
      process,
      name,
      budget: budgetOf(process, role),
      microsPerCall: microsPerCall * part,
      share: (microsPerCall * part) / total,
    }))
  })
}

/** What counts to each budget, in µs of CPU for one call. */
export function budgetSums(costs: readonly Cost[]): Record<BudgetName, number> {
  const names = Object.keys(BUDGETS) as BudgetName[]
  return Object.fromEntries(
    names.map((name) => [
      name,
      costs.filter(({ budget }) => budget === name).reduce((sum, { microsPerCall }) => sum + microsPerCall, 0),
    ]),
  ) as Record<BudgetName, number>
}
