import type { UsageRow } from '@carpool/core'

/** A way of running one function file on this machine. */
export interface Way {
  readonly key: WayKey
  readonly title: string
  /** What a reader has to know about it to judge its figures. */
  readonly note?: string
  /** Starts it from nothing, up to where it takes calls. */
  start(): Promise<RunningWay>
}

export type WayKey = 'carpool' | 'plain-node' | 'process-per-call'

export interface RunningWay extends AsyncDisposable {
  /** Where the function answers. */
  readonly url: string
  readonly rootPid: number
  /** What the way itself recorded of the calls, if it does. */
  readonly recorded?: () => Promise<readonly UsageRow[]>
  /** Whether a process, as the watch names it, runs the function's code; the others stand in front or help. */
  runsFunction(program: string): boolean
}
