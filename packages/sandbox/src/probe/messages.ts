import type { AttemptName, AttemptResult, Canaries } from './attempts.ts'
import type { OwnFacts } from './facts.ts'

/** What a probe is told: one line of JSON over the socket that it inherits. */
export interface ProbeOrder {
  readonly canaries: Canaries
  readonly attempts: readonly AttemptName[]
  /** Whether to look at itself; Node.js' permission model lets it not. */
  readonly tellsFacts: boolean
}

/** What it answers, the same way. */
export interface ProbeAnswer {
  readonly results: Readonly<Partial<Record<AttemptName, AttemptResult>>>
  readonly facts?: OwnFacts
}
