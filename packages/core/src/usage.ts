/** What one invocation used inside its host, as the host measured it. Whole numbers; nothing in it is ever negative. */
export interface InvocationUsage {
  /**
   * CPU time of the isolate's thread in entries of this invocation, up to its answer, in µs: its JavaScript, the garbage collection and the
   * compilation that happen on that thread, and what it costs to enter the isolate. Not in it: V8's helper threads, and the work of host
   * and server around the isolate.
   */
  readonly cpuUs: number
  /** Time in which the invocation waited for an isolate to be made and the module scope to run, in µs; 0 if it found one. */
  readonly initUs: number
  /** CPU time of making that isolate and running the module scope, in µs; charged to the invocation that caused it. */
  readonly initCpuUs: number
  /** Largest heap of the isolate seen so far, with what it holds outside the heap, in KiB. The isolate is shared by the invocations of a function. */
  readonly memoryPeakKb: number
  /** Bodies of requests that went over connections for its `fetch` calls, with redirects and failed ones, in bytes. */
  readonly egressBytesOut: number
  /** Bodies of responses as they came for its `fetch` calls, compressed or not, with redirects and as far as failed ones came, in bytes. */
  readonly egressBytesIn: number
  /** Isolates in which it was begun: more than 1 if one was ended by another invocation before this one had any effect outside. */
  readonly attempts: number
}

export const NO_USAGE: InvocationUsage = {
  cpuUs: 0,
  initUs: 0,
  initCpuUs: 0,
  memoryPeakKb: 0,
  egressBytesOut: 0,
  egressBytesIn: 0,
  attempts: 0,
}

/** What a function used while nobody waited for it: timers and promises left after an answer, and starts that no invocation caused. */
export interface BackgroundUsage {
  readonly functionName: string
  readonly revision: string
  readonly owner: string
  /** Id of the host process. */
  readonly host: number
  /** When it was told, in ms of the epoch. */
  readonly atMs: number
  readonly cpuUs: number
  readonly egressBytesOut: number
  readonly egressBytesIn: number
}
