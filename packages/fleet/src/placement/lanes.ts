import type { Revision } from '@carpool/core'

/** Weight of the newest call. */
const SMOOTHING = 0.2
/** What a call costs in the host around its isolate, in ms, as measured. */
const AROUND_MS = 0.01
/** What a call is taken to cost of which nothing is known, in ms. */
const UNKNOWN_COST_MS = 1

/** What a function asks of a host's room. */
export interface Lane {
  readonly functionName: string
  /** Usual CPU time of a call, in ms; undefined if it is not known. */
  costMs: number | undefined
  wallMs: number
}

/** What calls of each function cost lately: what fairness between functions and a guess at a host's backlog go by. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>()

  /** The lane of a revision's function, which from now on has the revision's limit. */
  of({ functionName, limits: { wallMs } }: Pick<Revision, 'functionName' | 'limits'>): Lane {
    let lane = this.#lanes.get(functionName)
    if (lane === undefined) {
      lane = { functionName, costMs: undefined, wallMs }
      this.#lanes.set(functionName, lane)
    } else lane.wallMs = wallMs
    return lane
  }

  /** Undefined if no call of it has come since it was forgotten. */
  find(functionName: string): Lane | undefined {
    return this.#lanes.get(functionName)
  }

  /** What a call of a function is expected to cost, in ms. */
  costMs(functionName: string): number {
    return this.#lanes.get(functionName)?.costMs ?? UNKNOWN_COST_MS
  }

  /** A call has used so much CPU time. */
  used(functionName: string, usedMs: number): void {
    const lane = this.#lanes.get(functionName)
    if (lane === undefined) return
    const cpuMs = usedMs + AROUND_MS
    lane.costMs = lane.costMs === undefined ? cpuMs : lane.costMs + (cpuMs - lane.costMs) * SMOOTHING
  }

  forget(functionName: string): void {
    this.#lanes.delete(functionName)
  }
}
