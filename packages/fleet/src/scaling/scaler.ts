import { MAX_DECISIONS, type ScalingDecisionInfo } from '@carpool/core'
import type { MachineLoad } from '../machine.ts'
import type { HostPool } from '../pool/host-pool.ts'
import type { HostProcess } from '../pool/host-process.ts'
import {
  decideScaling,
  initialScalingMemory,
  type FleetView,
  type Load,
  type ScalingDecision,
  type ScalingPolicy,
} from './scaling-policy.ts'

export interface ScalerOptions {
  readonly policy: ScalingPolicy
  readonly pool: HostPool
  /** A decision to change the number of hosts, or why a saturated fleet does not grow when that changes. */
  readonly onDecision: (decision: ScalingDecisionInfo) => void
}

const NO_LOAD: Load = { cpuCores: 0, loopUtilization: 0, delayedShare: 0, spanMs: 0 }
/** A host that is still to be started. */
const MISSING = { id: 0, state: 'starting', memoryBytes: 0, panic: NO_LOAD, steady: NO_LOAD, long: NO_LOAD } as const
/** Reasons not to grow that are logged: an operator can do something about them. */
const LOGGED_REASONS: ReadonlySet<string> = new Set(['max-hosts', 'no-spare-core', 'no-memory'])
/** The same reason is not logged again for so long, in ms. */
const LOG_AGAIN_MS = 60_000

/** Grows or shrinks the host pool as the policy decides. */
export class Scaler {
  readonly #options: ScalerOptions
  readonly #loggedAtMs = new Map<string, number>()
  #memory = initialScalingMemory(performance.now())
  #decisions: ScalingDecisionInfo[] = []

  constructor(options: ScalerOptions) {
    this.#options = options
  }

  /** The newest first. */
  get decisions(): readonly ScalingDecisionInfo[] {
    return this.#decisions
  }

  /** Called four times a second, after the hosts were sampled. */
  scale(machineLoad: MachineLoad, nowMs: number): void {
    const { pool, policy } = this.#options
    const { decision, memory } = decideScaling(this.#view(machineLoad, nowMs), this.#memory, policy)
    this.#memory = memory
    if (decision.action !== 'none' || this.#isToLog(decision.reason, nowMs)) this.#record(decision)
    if (decision.action === 'grow') pool.scaleUp(decision.hosts)
    else if (decision.action === 'shrink') pool.scaleDown(decision.host)
  }

  #view({ cores, busyCores: machineBusyCores, freeBytes }: MachineLoad, atMs: number): FleetView {
    const { policy, pool } = this.#options
    const viewOf = (host: HostProcess): FleetView['hosts'][number] => ({
      id: host.id,
      state: !host.serves ? 'draining' : host.takesCalls ? 'ready' : 'starting',
      readySinceMs: host.servesSinceMs ?? atMs,
      memoryBytes: host.load.memoryBytes,
      panic: host.load.over(policy.panicWindowMs),
      steady: host.load.over(policy.saturationWindowMs),
      long: host.load.over(policy.shrinkWindowMs),
    })
    const hosts = [...pool.all].filter((host) => !host.isStandby).map(viewOf)
    // Hosts that could not be started yet count as starting, or they would be asked for again and again.
    for (let count = 0; count < pool.missing; count++) hosts.push({ ...MISSING, readySinceMs: atMs })
    return { atMs, cores, machineBusyCores, freeBytes, hosts }
  }

  #isToLog(reason: string, nowMs: number): boolean {
    if (!LOGGED_REASONS.has(reason)) return false
    const isNews = nowMs - (this.#loggedAtMs.get(reason) ?? Number.NEGATIVE_INFINITY) > LOG_AGAIN_MS
    if (isNews) this.#loggedAtMs.set(reason, nowMs)
    return isNews
  }

  #record(decision: ScalingDecision): void {
    const { action, reason, because } = decision
    const hostsBefore = because.readyHosts + because.startingHosts
    const change = decision.action === 'grow' ? decision.hosts : decision.action === 'shrink' ? -1 : 0
    const figures = Object.fromEntries(Object.entries(because).map(([name, value]) => [name, Math.round(value * 1000) / 1000]))
    const info = { at: new Date().toISOString(), action, reason, hostsBefore, hostsAfter: hostsBefore + change, figures }
    this.#decisions = [info, ...this.#decisions].slice(0, MAX_DECISIONS)
    this.#options.onDecision(info)
  }
}
