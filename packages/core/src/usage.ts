/** What one invocation used inside its host, as the host measured it. Whole numbers; nothing in it is ever negative. */
export interface InvocationUsage {
  /**
   * CPU time of the isolate's thread in entries of this invocation, up to its answer, in µs: its JavaScript, the garbage
   * collection and the compilation that happen on that thread, and what it costs to enter the isolate. Not in it: V8's helper
   * threads, and the work of host and server around the isolate.
   */
  readonly cpuUs: number
  /** Time in which the invocation waited for an isolate to be made and the module scope to run, in µs; 0 if it found one. */
  readonly initUs: number
  /** CPU time of making that isolate and running the module scope, in µs; charged to the invocation that caused it. */
  readonly initCpuUs: number
  /**
   * Largest heap of the isolate seen so far, with what it holds outside the heap, in KiB. The isolate is shared by the
   * invocations of a function.
   */
  readonly memoryPeakKb: number
  /**
   * Bodies of requests that went over connections for its `fetch` calls, with redirects and failed ones, and what went over its
   * sockets, in bytes.
   */
  readonly egressBytesOut: number
  /**
   * Bodies of responses as they came for its `fetch` calls, compressed or not, with redirects and as far as failed ones came, and
   * what came over its sockets, in bytes.
   */
  readonly egressBytesIn: number
  /** TCP connections that it opened, TLS or not; those of its `fetch` calls are not among them. */
  readonly sockets: number
  /** How long these were open until its end, together, in µs. What is open longer is counted in the background from then on. */
  readonly socketUs: number
  /** Isolates in which it was begun: more than 1 if another invocation ended one before this one had any effect outside. */
  readonly attempts: number
}

export const NO_USAGE: InvocationUsage = {
  cpuUs: 0,
  initUs: 0,
  initCpuUs: 0,
  memoryPeakKb: 0,
  egressBytesOut: 0,
  egressBytesIn: 0,
  sockets: 0,
  socketUs: 0,
  attempts: 0,
}

/**
 * What a function used in the background: timers and promises left after an answer, starts that no invocation caused, and garbage
 * that was collected between calls.
 */
export interface BackgroundUsage {
  readonly functionName: string
  readonly revision: string
  readonly owner: string
  /** Id of the host process. */
  readonly host: number
  /** When it was reported, in ms of the epoch. */
  readonly atMs: number
  readonly cpuUs: number
  readonly egressBytesOut: number
  readonly egressBytesIn: number
  readonly sockets: number
  readonly socketUs: number
}

/**
 * Sums over the records of many invocations: all that a rate card needs. The products with memory are kept beside the sums, for
 * the functions of one row may have different memory limits.
 */
export interface UsageTotals {
  /** Invocations that had an outcome; those refused are not among them. */
  readonly invocations: number
  /** Those whose outcome was not `ok`. */
  readonly failures: number
  readonly refused: number
  /** Those whose start was not `warm`. */
  readonly coldStarts: number
  readonly cpuUs: number
  readonly initCpuUs: number
  /** CPU time of background work. */
  readonly backgroundCpuUs: number
  readonly wallUs: number
  readonly queueUs: number
  readonly initUs: number
  /** Each invocation's exec time rounded up to 1 ms, and times its memory limit in MiB. */
  readonly exec1Ms: number
  readonly exec1MbMs: number
  /** The same, rounded up to 100 ms. */
  readonly exec100Ms: number
  readonly exec100MbMs: number
  /** Each invocation's init time rounded up to 1 ms, and times its memory limit in MiB. */
  readonly init1Ms: number
  readonly init1MbMs: number
  /** Time in which instances of the function were in use: one for each {@link INSTANCE_CONCURRENCY} invocations or part of it. */
  readonly instanceUs: number
  readonly instanceMbMs: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly egressBytesIn: number
  readonly egressBytesOut: number
  /** Time for which streamed answers and WebSockets were open. */
  readonly openUs: number
  /** Sockets that were opened, and for how long they were open together; those of background work are among them. */
  readonly sockets: number
  readonly socketUs: number
  /** The largest of all. */
  readonly memoryPeakKb: number
}

/** The totals of nothing: every field of them, in this order. */
export const NO_TOTALS: UsageTotals = {
  invocations: 0,
  failures: 0,
  refused: 0,
  coldStarts: 0,
  cpuUs: 0,
  initCpuUs: 0,
  backgroundCpuUs: 0,
  wallUs: 0,
  queueUs: 0,
  initUs: 0,
  exec1Ms: 0,
  exec1MbMs: 0,
  exec100Ms: 0,
  exec100MbMs: 0,
  init1Ms: 0,
  init1MbMs: 0,
  instanceUs: 0,
  instanceMbMs: 0,
  bytesIn: 0,
  bytesOut: 0,
  egressBytesIn: 0,
  egressBytesOut: 0,
  openUs: 0,
  sockets: 0,
  socketUs: 0,
  memoryPeakKb: 0,
}

/** Invocations that share one instance where a platform lets them: the default of Cloud Run. */
export const INSTANCE_CONCURRENCY = 80

export const USAGE_GROUPS = ['function', 'owner', 'hour'] as const
export type UsageGroup = (typeof USAGE_GROUPS)[number]

/** The totals of one function, owner or hour. */
export interface UsageRow extends UsageTotals {
  /** The function's or the owner's name, or the beginning of the hour as ISO 8601 in UTC. */
  readonly key: string
}

/** `GET /v1/usage` */
export interface UsageQuery {
  readonly by: UsageGroup
  /** Only hours that end after this, in ms of the epoch: totals are kept by the hour. Absent: all. */
  readonly sinceMs?: number
  /** Only this function. */
  readonly functionName?: string
  /** Only what functions used while this one owned them. */
  readonly owner?: string
}

/** `GET /v1/invocations`: newest first, or slowest first. */
export interface InvocationQuery {
  readonly functionName?: string
  /** Only of functions that this one owned then. */
  readonly owner?: string
  readonly sinceMs?: number
  /** Only those that were refused, or whose outcome was not `ok`. */
  readonly failed?: boolean
  /** Ordered by exec time, the longest first. */
  readonly slow?: boolean
  /** Most records to give. */
  readonly limit: number
}
