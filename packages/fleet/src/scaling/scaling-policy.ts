import type {
  FleetView,
  GrowReason,
  HostView,
  Load,
  ScalingDecision,
  ScalingFigures,
  ScalingMemory,
  ScalingPolicy,
  WaitReason,
} from './scaling-types.ts'

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
 * It grows when every host is saturated and another one would help: there is a core to spare and memory for it. A host that starts, or has just
 * started, is capacity to be waited for (Knative did not count it, and overshot: serving#4344, #13284). By one host at a time, with a pause; in
 * panic straight to what is needed if that is twice what there is, as Knative does.
 *
 * It shrinks by what was needed at most within the shrink window, never by a mean: ten seconds of work after fifty of none are a mean of almost
 * nothing, by which Watt takes workers away in the middle of a burst.
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
