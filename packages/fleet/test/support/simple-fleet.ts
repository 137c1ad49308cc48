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
  readonly cpuCores: number[]
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
    for (const { cpuCores } of serving) cpuCores.push(each)
    const before = hosts.map((host): HostView => {
      const state = isReady(host) ? 'ready' : 'starting'
      const load = (windowMs: number): Load => loadOf(host.cpuCores, windowMs)
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
      for (let n = 0; n < decision.hosts; n++) hosts.push({ id: ++lastId, startedMs: atMs, cpuCores: [] })
    }
    if (decision.action === 'shrink') hosts = hosts.filter(({ id }) => id !== decision.host)
  }
  return steps
}

function loadOf(cpuCores: readonly number[], windowMs: number): Load {
  const known = cpuCores.slice(-windowMs / TICK_MS)
  const count = Math.max(1, known.length)
  return {
    cpuCores: known.reduce((sum, cores) => sum + cores, 0) / count,
    loopUtilization: 0,
    delayedShare: known.filter((cores) => cores >= 0.95).length / count,
    spanMs: known.length * TICK_MS,
  }
}
