/** What a host did over a time. */
export interface Load {
  /** CPU time that the process used for each time that passed: 1 is one core. */
  readonly cpuCores: number
  /** Share of the time in which its event loop was busy, 0 to 1. */
  readonly loopUtilization: number
  /**
   * Share of the windows of 100 ms in which the p90 run delay was above its target, 0 to 1. A window in which no entry was
   * counted is judged by how long those wait that wait at its end: entries of 200 ms fall into every other window only, and
   * would never come to the share that is saturated.
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
 * none, although every host is saturated: `host-starting` (or ready for less than 2 s), `max-hosts`, `no-spare-core`,
 * `no-memory`, `growing-pause`. none, else: `not-saturated`, and `no-host` if none is ready.
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

/** A host is only judged after this time, in ms: it takes work from the others only then. */
const SETTLING_MS = 2_000
/** Share of the windows of 100 ms in which entries must have waited for a host to be saturated. */
const SATURATED_DELAYED_SHARE = 0.6
const PANIC_DELAYED_SHARE = 0.8
/** A host is not worth starting for less of a core than this, which matters where there is a core and a bit. */
const MIN_SPARE_CORES = 0.25
/** How much of a window must be known. */
const KNOWN_SHARE = 0.9
/** In panic the fleet goes straight to what it needs if that is so many times what it has (Knative's autoscaler). */
const PANIC_FACTOR = 2

export function initialScalingMemory(atMs: number): ScalingMemory {
  return { sinceMs: atMs, grewAtMs: -Infinity, shrankAtMs: -Infinity, desired: [] }
}

/**
 * Whether the fleet gets another host, or one fewer. Asked every 250 ms.
 *
 * It grows when every host is saturated and another one would help: there is a core to spare and memory for it. A host that
 * starts, or has just started, is capacity to be waited for (Knative did not count it, and overshot: serving#4344, #13284).
 * By one host at a time, with a pause; in panic straight to what is needed if that is twice what there is, as Knative does.
 *
 * It shrinks by what was needed at most within the shrink window, never by a mean: ten seconds of work after fifty of none
 * are a mean of almost nothing, by which Watt takes workers away in the middle of a burst.
 */
export function decideScaling(
  view: FleetView,
  before: ScalingMemory,
  policy: ScalingPolicy,
): { readonly decision: ScalingDecision; readonly memory: ScalingMemory } {
  const { atMs } = view
  const desired = hostsFor(view.hosts, ({ steady }) => steady, policy)
  const memory = { ...before, desired: remember(before.desired, atMs, desired, policy.shrinkWindowMs) }
  const because = figuresOf(view, desired, memory)
  const ready = view.hosts.filter(({ state }) => state === 'ready')
  const grow = decideGrowth(view, ready, memory, policy, because)
  if (typeof grow !== 'string') {
    return { decision: { action: 'grow', ...grow, because }, memory: { ...memory, grewAtMs: atMs } }
  }
  const host = grow === 'not-saturated' ? hostToDrain(view, ready, memory, policy) : undefined
  if (host === undefined) return { decision: { action: 'none', reason: grow, because }, memory }
  return { decision: { action: 'shrink', reason: 'idle', host, because }, memory: { ...memory, shrankAtMs: atMs } }
}

function decideGrowth(
  view: FleetView,
  ready: readonly HostView[],
  memory: ScalingMemory,
  policy: ScalingPolicy,
  { startingHosts, meanHostBytes }: ScalingFigures,
): { readonly reason: GrowReason; readonly hosts: number } | WaitReason {
  const hosts = ready.length + startingHosts
  if (hosts < policy.minHosts) return { reason: 'below-minimum', hosts: policy.minHosts - hosts }
  if (ready.length === 0) return 'no-host'
  const settled = ready.filter(({ readySinceMs }) => view.atMs - readySinceMs >= SETTLING_MS)
  const judged = settled.length > 0 ? settled : ready
  const isPanic = judged.every(({ panic }) => isPanicking(panic, policy))
  if (!judged.every(({ panic, steady }) => isPanicking(panic, policy) || isSaturated(steady, policy))) return 'not-saturated'
  if (startingHosts > 0 || settled.length < ready.length) return 'host-starting'
  if (hosts >= policy.maxHosts) return 'max-hosts'
  const spareCores = view.cores - view.machineBusyCores
  if (view.machineBusyCores > (policy.machineFullPercent / 100) * view.cores || spareCores < MIN_SPARE_CORES)
    return 'no-spare-core'
  if (view.freeBytes <= meanHostBytes) return 'no-memory'
  const wanted = isPanic ? hostsFor(view.hosts, ({ panic }) => panic, policy) : 0
  if (wanted >= PANIC_FACTOR * hosts) {
    const useful = Math.min(wanted, policy.maxHosts) - hosts
    const possible = Math.floor(Math.min(spareCores, view.freeBytes / Math.max(1, meanHostBytes)))
    return { reason: 'panic', hosts: Math.max(1, Math.min(useful, possible)) }
  }
  if (view.atMs - memory.grewAtMs < policy.growPauseMs) return 'growing-pause'
  return { reason: isPanic ? 'panic' : 'saturated', hosts: 1 }
}

function hostToDrain(
  view: FleetView,
  ready: readonly HostView[],
  memory: ScalingMemory,
  policy: ScalingPolicy,
): number | undefined {
  const { atMs } = view
  const { shrinkWindowMs } = policy
  if (ready.length <= policy.minHosts || ready.length !== view.hosts.length) return undefined
  if (atMs - memory.sinceMs < shrinkWindowMs || atMs - memory.grewAtMs < shrinkWindowMs) return undefined
  if (atMs - memory.shrankAtMs < policy.shrinkPauseMs) return undefined
  if (ready.some(({ long }) => long.spanMs < KNOWN_SHARE * shrinkWindowMs)) return undefined
  const most = memory.desired[0]?.hosts ?? ready.length
  if (most >= ready.length || hostsFor(ready, ({ panic }) => panic, policy) >= ready.length) return undefined
  return ready.reduce((least, host) => (host.long.cpuCores < least.long.cpuCores ? host : least)).id
}

/** How many hosts the CPU time of all would fill to `shrinkPercent`. */
function hostsFor(hosts: readonly HostView[], loadOf: (host: HostView) => Load, { shrinkPercent }: ScalingPolicy): number {
  const cpuCores = hosts.reduce((sum, host) => sum + loadOf(host).cpuCores, 0)
  return Math.ceil(cpuCores / (shrinkPercent / 100))
}

function isSaturated({ cpuCores, loopUtilization, delayedShare, spanMs }: Load, policy: ScalingPolicy): boolean {
  return (
    spanMs >= KNOWN_SHARE * policy.saturationWindowMs &&
    Math.max(cpuCores, loopUtilization) >= policy.saturationPercent / 100 &&
    delayedShare >= SATURATED_DELAYED_SHARE
  )
}

function isPanicking({ cpuCores, loopUtilization, delayedShare, spanMs }: Load, policy: ScalingPolicy): boolean {
  return (
    spanMs >= KNOWN_SHARE * policy.panicWindowMs &&
    Math.max(cpuCores, loopUtilization) >= policy.panicPercent / 100 &&
    delayedShare >= PANIC_DELAYED_SHARE
  )
}

function remember(desired: ScalingMemory['desired'], atMs: number, hosts: number, windowMs: number): ScalingMemory['desired'] {
  const kept = desired.filter((past) => atMs - past.atMs <= windowMs && past.hosts > hosts)
  return [...kept, { atMs, hosts }]
}

function figuresOf(
  { hosts, cores, machineBusyCores, freeBytes }: FleetView,
  desired: number,
  memory: ScalingMemory,
): ScalingFigures {
  const ready = hosts.filter(({ state }) => state === 'ready')
  const mean = (of: (host: HostView) => number): number =>
    ready.reduce((sum, host) => sum + of(host), 0) / Math.max(1, ready.length)
  return {
    readyHosts: ready.length,
    startingHosts: hosts.filter(({ state }) => state === 'starting').length,
    desiredHosts: desired,
    mostDesiredHosts: memory.desired[0]?.hosts ?? desired,
    steadyCpuCores: mean(({ steady }) => steady.cpuCores),
    steadyLoopUtilization: mean(({ steady }) => steady.loopUtilization),
    steadyDelayedShare: mean(({ steady }) => steady.delayedShare),
    panicCpuCores: mean(({ panic }) => panic.cpuCores),
    panicLoopUtilization: mean(({ panic }) => panic.loopUtilization),
    panicDelayedShare: mean(({ panic }) => panic.delayedShare),
    cores,
    machineBusyCores,
    freeBytes,
    meanHostBytes: mean(({ memoryBytes }) => memoryBytes),
  }
}
