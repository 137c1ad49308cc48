import type { TableStyle } from './table.ts'
import type { Verdict } from './verdict.ts'

export interface ScenarioOptions {
  /** Shorter, and without what needs minutes: to see whether things work rather than how well. */
  readonly isQuick: boolean
  readonly style: TableStyle
}

export interface Measured {
  /** Tables and notes, one block each. */
  readonly blocks: readonly string[]
  readonly verdicts: readonly Verdict[]
  /** All that was measured, for machines. */
  readonly results: unknown
}

/** One claim of the product, tried with real processes. */
export type Scenario = (options: ScenarioOptions) => Promise<Measured>
