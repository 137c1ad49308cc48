import type { Outcome } from '@carpool/core'

/** What a function did since the server started. */
export interface FunctionUsage {
  /** Admitted invocations that have ended. */
  readonly invocations: number
  /** Those whose outcome was not `ok`. */
  readonly failures: number
}

/** Counts what every admitted invocation came to. */
export class Meter {
  readonly #usage = new Map<string, { invocations: number; failures: number }>()

  record(functionName: string, outcome: Outcome): void {
    const usage = this.#usage.get(functionName)
    if (usage === undefined) {
      this.#usage.set(functionName, { invocations: 1, failures: outcome === 'ok' ? 0 : 1 })
      return
    }
    usage.invocations++
    if (outcome !== 'ok') usage.failures++
  }

  usageOf(functionName: string): FunctionUsage {
    return { invocations: 0, failures: 0, ...this.#usage.get(functionName) }
  }
}
