import { decideScaling, initialScalingMemory } from './scaling-policy.ts'
import type { FleetView, Load, ScalingDecision, ScalingPolicy } from './scaling-types.ts'
import { MAX_DECISIONS, type ScalingDecisionInfo } from '@carpool/core'
import type { HostProcess } from '../pool/host-process.ts'
import type { HostSupply } from '../pool/host-supply.ts'
import type { Quarantine } from '../health/quarantine.ts'
import type { Machine, MachineLoad } from '../machine/machine.ts'

export interface ScalerOptions {
  readonly policy: ScalingPolicy
  readonly supply: HostSupply
  readonly quarantine: Quarantine
  readonly machine: Machine
  /** A decision to change the number of hosts, or why a saturated fleet does not grow when that changes. */
  readonly onDecision: (decision: ScalingDecisionInfo) => void
}

/** How often the fleet is looked at, in ms. */
export const LOOK_MS = 250
const NO_LOAD: Load = { cpuCores: 0, loopUtilization: 0, delayedShare: 0, spanMs: 0 }
/** A host that is to be started. */
const OWED = { id: 0, state: 'starting', memoryBytes: 0, panic: NO_LOAD, steady: NO_LOAD, long: NO_LOAD } as const
/** Reasons not to grow that an operator wants to know of. */
const TELLING_REASONS: ReadonlySet<string> = new Set(['max-hosts', 'no-spare-core', 'no-memory'])
/** The same reason is not told again for so long, in ms. */
const TELL_AGAIN_MS = 60_000

/** Looks at the hosts and the machine a few times a second, and grows or shrinks the fleet as the policy says. */
export class Scaler {
  readonly #options: ScalerOptions
  readonly #told = new Map<string, number>()
  #memory = initialScalingMemory(performance.now())
  #decisions: ScalingDecisionInfo[] = []
  #load: MachineLoad
  #timer: NodeJS.Timeout | undefined

  constructor(options: ScalerOptions) {
    this.#options = options
    this.#load = options.machine.load(performance.now())
  }

  /** The newest first. */
  get decisions(): readonly ScalingDecisionInfo[] {
    return this.#decisions
  }

  /** As of the last look. */
  get machineLoad(): MachineLoad {
    return this.#load
  }

  start(): void {
    this.#timer = setInterval(() => this.#look(), LOOK_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const { supply, quarantine, machine, policy } = this.#options
    const atMs = performance.now()
    this.#load = machine.load(atMs)
    for (const host of [...supply.all, ...quarantine.hosts]) host.sample(atMs)
    supply.upkeep(atMs)
    quarantine.upkeep(atMs)
    const { decision, memory } = decideScaling(this.#view(atMs), this.#memory, policy)
    this.#memory = memory
    if (decision.action !== 'none' || this.#isWorthTelling(decision.reason, atMs)) this.#tell(decision)
    if (decision.action === 'grow') supply.grow(decision.hosts)
    else if (decision.action === 'shrink') supply.drain(decision.host)
  }

  #view(atMs: number): FleetView {
    const { cores, busyCores: machineBusyCores, freeBytes } = this.#load
    const { policy, supply } = this.#options
    const viewOf = (host: HostProcess): FleetView['hosts'][number] => ({
      id: host.id,
      state: !host.serves ? 'draining' : host.takesInvocations ? 'ready' : 'starting',
      readySinceMs: host.servesSinceMs ?? atMs,
      memoryBytes: host.signals.memoryBytes,
      panic: host.signals.load(policy.panicWindowMs),
      steady: host.signals.load(policy.saturationWindowMs),
      long: host.signals.load(policy.shrinkWindowMs),
    })
    const hosts = [...supply.all].filter((host) => !host.isStandby).map(viewOf)
    // What could not be started yet counts as starting, or it would be asked for again and again.
    for (let count = 0; count < supply.owed; count++) hosts.push({ ...OWED, readySinceMs: atMs })
    return { atMs, cores, machineBusyCores, freeBytes, hosts }
  }

  #isWorthTelling(reason: string, atMs: number): boolean {
    if (!TELLING_REASONS.has(reason)) return false
    const isNews = atMs - (this.#told.get(reason) ?? Number.NEGATIVE_INFINITY) > TELL_AGAIN_MS
    if (isNews) this.#told.set(reason, atMs)
    return isNews
  }

  #tell(decision: ScalingDecision): void {
    const { action, reason, because } = decision
    const hostsBefore = because.readyHosts + because.startingHosts
    const change = decision.action === 'grow' ? decision.hosts : decision.action === 'shrink' ? -1 : 0
    const figures = Object.fromEntries(Object.entries(because).map(([name, value]) => [name, Math.round(value * 1000) / 1000]))
    const told = { at: new Date().toISOString(), action, reason, hostsBefore, hostsAfter: hostsBefore + change, figures }
    this.#decisions = [told, ...this.#decisions].slice(0, MAX_DECISIONS)
    this.#options.onDecision(told)
  }
}
