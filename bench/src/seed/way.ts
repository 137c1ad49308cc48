import type { UsageRow } from '@carpool/core'
import type { SplitHosts } from '../lib/standby.ts'
import type { TreeUsage } from '../lib/tree-account.ts'

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
  /**
   * Which of the processes that were watched ran the function's code, and which are kept started and have not; the others stand
   * in front or help. To be called after the last answer.
   */
  splitProcesses(usage: TreeUsage): Promise<SplitHosts>
}
