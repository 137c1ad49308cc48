/** What a host did over a time. */
export interface Load {
  /** CPU time that the process used for each time that passed: 1 is one core. */
  readonly cpuCores: number
  /** Share of the time in which its event loop was busy, 0 to 1. */
  readonly loopUtilization: number
  /**
   * Share of the windows of 100 ms in which the p90 run delay was above its target, 0 to 1. A window in which no entry was counted is judged by how
   * long those wait that wait at its end: entries of 200 ms fall into every other window only, and would never come to the share that is saturated.
   */
  readonly delayedShare: number
  /** How much of the time it is known for, in ms. */
  readonly spanMs: number
}

/** One host process. A standby is none. */
export interface HostView {
  readonly id: number
  readonly state: 'starting' | 'ready' | 'draining'
  /** When it became ready, in ms of the view's clock; of a starting host it has no meaning. */
  readonly readySinceMs: number
  readonly memoryBytes: number
  /** Over `panicWindowMs`. */
  readonly panic: Load
  /** Over `saturationWindowMs`. */
  readonly steady: Load
  /** Over `shrinkWindowMs`. */
  readonly long: Load
}

/** What the decision is made on. How many invocations are in flight is not in it, and must not be: who waits needs no CPU. */
export interface FleetView {
  /** Time of a monotonic clock, in ms. */
  readonly atMs: number
  /** Cores that the server and its hosts may use; a control group may give a fraction of one. */
  readonly cores: number
  /** How many of them are busy, with the work of other programs. */
  readonly machineBusyCores: number
  /** Memory that new processes can take, in bytes. */
  readonly freeBytes: number
  readonly hosts: readonly HostView[]
}

/** Settings of the same names; see their help for the defaults. */
export interface ScalingPolicy {
  readonly minHosts: number
  /** 1 or more. */
  readonly maxHosts: number
  readonly saturationPercent: number
  readonly saturationWindowMs: number
  readonly panicPercent: number
  readonly panicWindowMs: number
  readonly machineFullPercent: number
  readonly growPauseMs: number
  readonly shrinkWindowMs: number
  readonly shrinkPauseMs: number
  readonly shrinkPercent: number
}

/**
 * Why a decision was made.
 *
 * grow: `below-minimum`, `saturated` over the saturation window, `panic` over the panic window. shrink: `idle`.
 *
 * none, although every host is saturated: `host-starting` (or ready for less than 2 s), `max-hosts`, `no-spare-core`, `no-memory`,
 * `growing-pause`. none, else: `not-saturated`, and `no-host` if none is ready.
 */
export type GrowReason = 'below-minimum' | 'saturated' | 'panic'

export type WaitReason =
  | 'host-starting'
  | 'max-hosts'
  | 'no-spare-core'
  | 'no-memory'
  | 'growing-pause'
  | 'not-saturated'
  | 'no-host'

/** The figures that a decision was made on. Of hosts, those that are ready, as a mean. */
export type ScalingFigures = Readonly<
  Record<
    | 'readyHosts'
    | 'startingHosts'
    | 'desiredHosts'
    | 'mostDesiredHosts'
    | 'steadyCpuCores'
    | 'steadyLoopUtilization'
    | 'steadyDelayedShare'
    | 'panicCpuCores'
    | 'panicLoopUtilization'
    | 'panicDelayedShare'
    | 'cores'
    | 'machineBusyCores'
    | 'freeBytes'
    | 'meanHostBytes',
    number
  >
>

export type ScalingDecision = { readonly because: ScalingFigures } & (
  | { readonly action: 'none'; readonly reason: WaitReason }
  /** Start this many hosts. */
  | { readonly action: 'grow'; readonly reason: GrowReason; readonly hosts: number }
  /** Drain this host. */
  | { readonly action: 'shrink'; readonly reason: 'idle'; readonly host: number }
)

/** What a decision has to know of those before it. */
export interface ScalingMemory {
  /** When the fleet was first looked at, in ms. */
  readonly sinceMs: number
  readonly grewAtMs: number
  readonly shrankAtMs: number
  /** How many hosts were wanted, falling: what came before a higher number no longer matters. */
  readonly desired: ReadonlyArray<{ readonly atMs: number; readonly hosts: number }>
}
