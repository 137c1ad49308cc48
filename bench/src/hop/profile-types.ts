/** What a process tells of its main thread (self-profile.mjs). */
export interface TakenProfile {
  readonly profile: CpuProfile
  /** CPU time of the thread meanwhile, by the system. */
  readonly cpuUs: number
  /** Code that has no file of its own, by script id. */
  readonly sources: Readonly<Record<string, string>>
}

/** The part of V8's format that is read. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[]
  /** Node on top of the stack at each sample. */
  readonly samples: readonly number[]
  /** Time before each sample, in µs. */
  readonly timeDeltas: readonly number[]
}

export interface ProfileNode {
  readonly id: number
  readonly callFrame: CallFrame
  readonly children?: readonly number[]
}

export interface CallFrame {
  readonly functionName: string
  readonly scriptId: string
  /** Empty for what is built in. */
  readonly url: string
  /** From 0. */
  readonly lineNumber: number
}
