import type { TreeMember } from './process-tree.ts'

export interface ProcessUsage {
  readonly pid: number
  readonly program: string
  readonly cpuSeconds: number
  readonly peakBytes: number
}

/** What a tree of processes used between the first look at it and the last. */
export interface TreeUsage {
  /** `pss` divides shared pages among the processes that share them; `rss` counts them for each. */
  readonly memoryKind: 'pss' | 'rss'
  /** Largest sum over all processes at one look. */
  readonly peakBytes: number
  readonly peakResidentBytes: number
  readonly peakProcesses: number
  /** User and system time, including that of processes that ended meanwhile. */
  readonly cpuSeconds: number
  readonly processes: readonly ProcessUsage[]
  readonly looks: number
  /** Longest time between two looks: a peak shorter than this may have been missed. */
  readonly longestGapMs: number
}

/** Adds up looks at a tree of processes. */
export class TreeAccount {
  readonly #processes = new Map<number, ProcessUsage & { readonly startCpuSeconds: number }>()
  #isProportional = true
  #peakProportionalBytes = 0
  #peakResidentBytes = 0
  #peakProcesses = 0
  #firstCpuSeconds: number | undefined
  #lastCpuSeconds = 0
  #looks = 0
  #lastLookMs: number | undefined
  #longestGapMs = 0

  look(atMs: number, members: readonly TreeMember[]): void {
    this.#longestGapMs = Math.max(this.#longestGapMs, atMs - (this.#lastLookMs ?? atMs))
    this.#lastLookMs = atMs
    for (const member of members) this.#note(member)
    this.#isProportional &&= members.every(({ proportionalBytes }) => proportionalBytes !== undefined)
    this.#peakProportionalBytes = Math.max(
      this.#peakProportionalBytes,
      sum(members, ({ proportionalBytes = 0 }) => proportionalBytes),
    )
    this.#peakResidentBytes = Math.max(
      this.#peakResidentBytes,
      sum(members, ({ residentBytes }) => residentBytes),
    )
    this.#peakProcesses = Math.max(this.#peakProcesses, members.length)
    this.#lastCpuSeconds = sum(members, ({ cpuSeconds, endedChildrenCpuSeconds }) => cpuSeconds + endedChildrenCpuSeconds)
    this.#firstCpuSeconds ??= this.#lastCpuSeconds
    this.#looks++
  }

  get usage(): TreeUsage {
    const processes = [...this.#processes.values()].map(({ pid, program, cpuSeconds, peakBytes }) => ({
      pid,
      program,
      cpuSeconds,
      peakBytes,
    }))
    return {
      memoryKind: this.#isProportional ? 'pss' : 'rss',
      peakBytes: this.#isProportional ? this.#peakProportionalBytes : this.#peakResidentBytes,
      peakResidentBytes: this.#peakResidentBytes,
      peakProcesses: this.#peakProcesses,
      // Both are lower bounds: the first misses what was never waited for, the second the end of a life between two looks.
      cpuSeconds: Math.max(
        this.#lastCpuSeconds - (this.#firstCpuSeconds ?? 0),
        sum(processes, ({ cpuSeconds }) => cpuSeconds),
      ),
      processes,
      looks: this.#looks,
      longestGapMs: this.#longestGapMs,
    }
  }

  #note({ pid, program, cpuSeconds, residentBytes, proportionalBytes = residentBytes }: TreeMember): void {
    const known = this.#processes.get(pid)
    // What a process used before the first look at the tree is not counted; one that comes later starts from nothing.
    const startCpuSeconds = known?.startCpuSeconds ?? (this.#looks === 0 ? cpuSeconds : 0)
    this.#processes.set(pid, {
      pid,
      program,
      cpuSeconds: cpuSeconds - startCpuSeconds,
      peakBytes: Math.max(known?.peakBytes ?? 0, proportionalBytes),
      startCpuSeconds,
    })
  }
}

function sum<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((total, item) => total + value(item), 0)
}
