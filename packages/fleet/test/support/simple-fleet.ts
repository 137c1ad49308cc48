import {
  decideScaling,
  initialScalingMemory,
  type HostView,
  type Load,
  type ScalingDecision,
  type ScalingPolicy,
} from '../../src/scaling/scaling-policy.ts'

export const TICK_MS = 250

export interface Demand {
  /** CPU time that work would use, in cores. */
  readonly cores: number
  readonly machineCores: number
  /** Whether the host that came first dies now. */
  readonly kills?: boolean
}

export interface Step {
  readonly atMs: number
  readonly decision: ScalingDecision
  readonly before: readonly HostView[]
}

interface SimpleHost {
  readonly id: number
  readonly startedMs: number
  /** Of its CPU time, and of its full ticks, the sums up to each tick. */
  readonly cores: number[]
  readonly full: number[]
}

const START_MS = 500

/** A fleet whose hosts share what is demanded equally, each at most a core; it does what is decided, one demand for each tick. */
export function follow(policy: ScalingPolicy, demands: readonly Demand[]): Step[] {
  const steps: Step[] = []
  let hosts: SimpleHost[] = []
  let memory = initialScalingMemory(0)
  let lastId = 0
  for (const [tick, { cores, machineCores, kills = false }] of demands.entries()) {
    const atMs = tick * TICK_MS
    if (kills) hosts = hosts.slice(1)
    const isReady = ({ startedMs }: SimpleHost): boolean => atMs - startedMs >= START_MS
    const serving = hosts.filter(isReady)
    const each = Math.min(1, Math.min(cores, machineCores) / Math.max(1, serving.length))
    for (const { cores, full } of serving) {
      cores.push(cores.at(-1)! + each)
      full.push(full.at(-1)! + (each >= 0.95 ? 1 : 0))
    }
    const before = hosts.map((host): HostView => {
      const state = isReady(host) ? 'ready' : 'starting'
      const load = (windowMs: number): Load => loadOf(host, windowMs)
      return {
        id: host.id,
        state,
        readySinceMs: host.startedMs + START_MS,
        memoryBytes: 1e8,
        panic: load(policy.panicWindowMs),
        steady: load(policy.saturationWindowMs),
        long: load(policy.shrinkWindowMs),
      }
    })
    const view = { atMs, cores: machineCores, machineBusyCores: each * serving.length, freeBytes: 1e9, hosts: before }
    const decided = decideScaling(view, memory, policy)
    const { decision } = decided
    memory = decided.memory
    steps.push({ atMs, decision, before })
    if (decision.action === 'grow') {
      for (let n = 0; n < decision.hosts; n++) hosts.push({ id: ++lastId, startedMs: atMs, cores: [0], full: [0] })
    }
    if (decision.action === 'shrink') hosts = hosts.filter(({ id }) => id !== decision.host)
  }
  return steps
}

function loadOf({ cores, full }: SimpleHost, windowMs: number): Load {
  const last = cores.length - 1
  const first = Math.max(0, last - Math.floor(windowMs / TICK_MS))
  const count = Math.max(1, last - first)
  return {
    // Sums are rounded. A little more than a core each, and three full hosts would seem to need six.
    cpuCores: Math.min(1, Math.max(0, cores[last]! - cores[first]!) / count),
    loopUtilization: 0,
    delayedShare: (full[last]! - full[first]!) / count,
    spanMs: (last - first) * TICK_MS,
  }
}
