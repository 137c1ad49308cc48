import type { QueuePolicy } from '@carpool/admission'
import {
  KILL_POLICY,
  CarpoolError,
  type Call,
  type FailedStartsInfo,
  type HostInfo,
  type Revision,
  type ScalingDecisionInfo,
} from '@carpool/core'
import { Quarantine } from './health/quarantine.ts'
import { Strikes, type StrikeLevel, type StrikePolicy } from './health/strikes.ts'
import type { HostHarm } from './health/suspects.ts'
import type { Machine, MachineLoad } from './machine.ts'
import { Placement, type CallListener } from './placement/placement.ts'
import type { HostRevision, RevisionCode } from './pool/host-connection.ts'
import { HostPool, type RecyclingPolicy } from './pool/host-pool.ts'
import { HostProcess, type HostPolicy, type HostProcessListener } from './pool/host-process.ts'
import type { HostProgram } from './pool/os-process.ts'
import { SmokeTests, type SmokeTestResult } from './pool/smoke-tests.ts'
import type { HostLimitPolicy } from './scaling/host-limit.ts'
import { Scaler } from './scaling/scaler.ts'
import type { ScalingPolicy } from './scaling/scaling-policy.ts'

export interface FleetPolicy {
  readonly scaling: ScalingPolicy
  readonly limit: HostLimitPolicy
  readonly queue: QueuePolicy
  /** Most calls that may wait for a host. */
  readonly maxQueued: number
  readonly standbyHosts: number
  readonly hostStartTimeoutMs: number
  readonly strikes: StrikePolicy
  /** Most processes for functions in quarantine. */
  readonly quarantineHosts: number
  /** How long the other calls of a poisoned host have to end, in ms. */
  readonly poisonedDrainMs: number
  readonly recycling: RecyclingPolicy
}

export interface FleetOptions {
  readonly program: HostProgram
  readonly policy: FleetPolicy
  readonly machine: Machine
  /** Reads the code of a revision. */
  readonly codeOf: (revision: Revision) => Promise<RevisionCode>
  /** Whose a function is; undefined if there is none of that name. */
  readonly ownerOf: (functionName: string) => string | undefined
  /** Whether a revision is what its function's name stands for now. */
  readonly isLive: (revision: Revision) => boolean
  /** The functions that are up in every host before they are called, and stay. */
  readonly isKeptWarm: (functionName: string) => boolean
  /** Their live revisions. */
  readonly keptWarm: () => Iterable<Revision>
  readonly listener: FleetListener
  readonly calls: CallListener
}

/** Called on the server's loop. */
export interface FleetListener
  extends Omit<HostProcessListener, 'answered' | 'unbegun' | 'hasRoom' | 'poisoned' | 'lost' | 'gone'> {
  gone(host: HostProcess, how: string): void
  /** A host has ended unasked, or could not be started; a new one is started in so many ms. */
  hostLost(how: string, respawnInMs: number, host?: HostProcess): void
  /** What runs in a host harms it; another takes its place. */
  hostPoisoned(host: HostProcess, harm: HostHarm): void
  /** A function has harmed a host process, or may have. @param strikes how many count against it now */
  strikeAdded(functionName: string, level: StrikeLevel, strikes: number): void
  hostStarted(result: 'ready' | 'failed'): void
  scaled(decision: ScalingDecisionInfo): void
}

/** How often hosts and machine are looked at, in ms. */
const TICK_MS = 250
/** A tick that comes this much too late shows that the server was held up itself, stopped or asleep with the machine, in ms. */
const HELD_UP_MS = 100
/** Ticks from one look of the watchdogs to the next. */
const TICKS_PER_WATCH = 2

/** The host processes: sends each call to one of them, and keeps as many as the CPU calls for. */
export class Fleet {
  readonly #options: FleetOptions
  readonly #pool: HostPool
  readonly #scaler: Scaler
  readonly #placement: Placement
  readonly #smokeTests: SmokeTests
  readonly #strikes: Strikes
  readonly #quarantine: Quarantine
  readonly #untilReady = Promise.withResolvers<void>()
  #machineLoad: MachineLoad
  #ticker: NodeJS.Timeout | undefined
  #ticks = 0
  #tickedAtMs = 0
  #lastId = 0

  constructor(options: FleetOptions) {
    this.#options = options
    const { policy, machine, listener } = options
    this.#machineLoad = machine.load(performance.now())
    this.#pool = new HostPool({
      minHosts: policy.scaling.minHosts,
      maxHosts: policy.scaling.maxHosts,
      standbyHosts: policy.standbyHosts,
      recycling: policy.recycling,
      canStartStandby: () => !this.#isMachineFull,
      start: () => this.#startHost(),
      onServing: (host) => this.#onServing(host),
      onLost: (how, respawnInMs, host) => listener.hostLost(how, respawnInMs, host),
      onStart: (result) => listener.hostStarted(result),
    })
    this.#strikes = new Strikes(policy.strikes, options.ownerOf)
    this.#quarantine = new Quarantine({ maxHosts: policy.quarantineHosts, start: () => this.#startHost() })
    this.#scaler = new Scaler({ policy: policy.scaling, pool: this.#pool, onDecision: (decision) => listener.scaled(decision) })
    this.#placement = new Placement({
      ...policy,
      readyHosts: (functionName) =>
        this.isQuarantined(functionName) ? this.#quarantine.readyFor(functionName) : this.#pool.ready,
      hasHost: () => this.isReady,
      allHosts: () => this.#all,
      isOverloaded: () => this.isOverloaded,
      give: (host, revision) => this.#give(host, revision),
      isLive: options.isLive,
      calls: options.calls,
    })
    this.#smokeTests = new SmokeTests(() => this.#startSmokeTestHost())
  }

  /** Starts the hosts. Resolves when as many as there must be are ready; rejects only if it is closed before. */
  start(): Promise<void> {
    this.#pool.fill()
    this.#tickedAtMs = performance.now()
    this.#ticker = setInterval(() => this.#tick(), TICK_MS)
    return this.#untilReady.promise
  }

  /** Refuses what still waits for a host, and ends all host processes. */
  async close(): Promise<void> {
    this.#pool.close()
    clearInterval(this.#ticker)
    this.#ticker = undefined
    this.#placement.close()
    this.#untilReady.reject(new CarpoolError('draining', 'The server is shutting down.'))
    this.#untilReady.promise.catch(() => {})
    this.#smokeTests.close()
    this.#quarantine.close()
    const hosts = [...this.#all, ...this.#smokeTests.hosts]
    for (const host of hosts) host.stop()
    await Promise.all(hosts.map(({ ended }) => ended))
  }

  /** 4 of the table in ARCHITECTURE.md: takes a routed call to a host, now if one has room, else from the queue. */
  place(call: Call): void {
    this.#placement.place(call)
  }

  /** Compiles and loads new code where no running function feels it. */
  smokeTest(owner: string, revision: HostRevision, source: string): Promise<SmokeTestResult> {
    return this.#smokeTests.run(owner, revision, source)
  }

  /** Brings a revision up in every host, so that its first call finds it warm. A failure shows again at the first call. */
  async warm(revision: HostRevision, code: RevisionCode): Promise<void> {
    const ready = this.isQuarantined(revision.functionName) ? [] : this.#pool.ready.filter(({ isSilent }) => !isSilent)
    const keepWarm = this.#options.isKeptWarm(revision.functionName)
    for (const host of ready) host.connection.give({ ...revision, keepWarm }, code)
    await Promise.all(ready.map((host) => host.connection.start(revision)))
  }

  /** A revision is live from now on. */
  published({ functionName, owner }: Revision): void {
    this.#strikes.clearIfOwnerChanged(functionName, owner)
  }

  /** Gives a code cache to every host that has the revision. */
  useCodeCache(revision: string, codeCache: Uint8Array): void {
    for (const host of this.#all) host.connection.useCodeCache(revision, codeCache)
  }

  /** Has every host forget a revision once what it runs of it has ended. */
  retire(revision: string): void {
    for (const host of this.#all) host.connection.retire(revision)
  }

  /** The function is gone: what is known of it is of no use any more. */
  forget(functionName: string): void {
    this.#placement.forget(functionName)
  }

  /** An operator has disabled a function: its calls that wait are refused, and its background work ends. */
  disable(functionName: string): void {
    this.#retireFunction(this.#all, functionName)
    this.#refuseDisabled(functionName)
  }

  /** An operator has enabled a function again. */
  clearStrikes(functionName: string): void {
    this.#strikes.clear(functionName)
  }

  /** Whether a function has harmed host processes, and runs in one of its own. */
  isQuarantined(functionName: string): boolean {
    return this.#strikes.level(functionName, performance.now()) !== 'free'
  }

  get hosts(): HostInfo[] {
    const quarantined = this.#quarantine.hosts.map((host) => {
      const quarantineOf = this.#quarantine.functionIn(host)
      return { ...host.info, ...(quarantineOf !== undefined && { quarantineOf }) }
    })
    return [...[...this.#pool.all].map((host) => host.info), ...quarantined]
  }

  get queued(): number {
    return this.#placement.queued
  }

  get decisions(): readonly ScalingDecisionInfo[] {
    return this.#scaler.decisions
  }

  get failedStarts(): FailedStartsInfo {
    return this.#pool.failedStarts
  }

  /** As of the last tick. */
  get machineLoad(): MachineLoad {
    return this.#machineLoad
  }

  get isReady(): boolean {
    return this.#pool.ready.length > 0
  }

  /**
   * Whether the CPU is full: entries have lately waited too long in every host, and the host is busy or the whole machine is.
   * A wait alone may be a burst that is over before it could be helped, or a function that loads.
   */
  get isOverloaded(): boolean {
    // Of one that is silent nothing is known.
    const ready = this.#pool.ready.filter(({ isSilent }) => !isSilent)
    const isMachineFull = this.#isMachineFull
    return ready.length > 0 && ready.every(({ isDelayed, load }) => isDelayed && (isMachineFull || load.isBusy))
  }

  /** Whether the CPU is full and the queue stands: calls are refused because they would have to wait too long. */
  get isShedding(): boolean {
    return this.isOverloaded && this.#placement.queueStands
  }

  /** Looks at the hosts: at once, or when what they have said is read if this process itself was held up. */
  #tick(): void {
    const nowMs = performance.now()
    const lateMs = nowMs - this.#tickedAtMs - TICK_MS
    this.#tickedAtMs = nowMs
    if (lateMs <= HELD_UP_MS) return this.#look(nowMs)
    for (const host of this.#all) host.excuse(lateMs, nowMs)
    // What hosts have said meanwhile is read first.
    setImmediate(() => {
      if (this.#ticker !== undefined) this.#look(performance.now())
    })
  }

  /** Everything periodic in the fleet. In this order: each step goes by the figures of those before it. */
  #look(nowMs: number): void {
    this.#machineLoad = this.#options.machine.load(nowMs)
    for (const host of this.#all) host.sample(nowMs)
    if (++this.#ticks % TICKS_PER_WATCH === 0) for (const host of [...this.#all, ...this.#smokeTests.hosts]) host.watch(nowMs)
    this.#pool.upkeep(nowMs)
    this.#takeBack()
    this.#quarantine.upkeep(nowMs)
    this.#scaler.scale(this.#machineLoad, nowMs)
  }

  /** Calls that a silent host never began go to those that are not; without one they may as well wait where they are. */
  #takeBack(): void {
    const hosts = [...this.#pool.all]
    if (!hosts.some(({ takesCalls, isSilent }) => takesCalls && !isSilent)) return
    for (const host of hosts) if (host.isSilent) host.takeBackUnread()
  }

  get #all(): HostProcess[] {
    return [...this.#pool.all, ...this.#quarantine.hosts]
  }

  get #isMachineFull(): boolean {
    const { cores, busyCores } = this.#machineLoad
    return busyCores >= (cores * this.#options.policy.scaling.machineFullPercent) / 100
  }

  async #give(host: HostProcess, revision: Revision): Promise<void> {
    const code = await this.#options.codeOf(revision)
    host.connection.give({ ...revision, keepWarm: this.#options.isKeptWarm(revision.functionName) }, code)
  }

  #startHost(): HostProcess {
    const { program, listener } = this.#options
    return new HostProcess(++this.#lastId, program, this.#hostPolicy, {
      ...listener,
      answered: (host, call, result) => this.#placement.answered(host, call, result),
      unbegun: (host, call) => this.#placement.unbegun(host, call),
      hasRoom: (_host, freedBy) => this.#placement.dispatch(freedBy),
      poisoned: (host, harm) => {
        if (this.#quarantine.hosts.includes(host)) host.drain('poisoned')
        else this.#pool.poison(host)
        listener.hostPoisoned(host, harm)
        this.#attribute(host, harm.suspects, harm.isCertain)
        this.#placement.dispatch()
      },
      // Its calls wait for the standby.
      lost: () => this.#pool.fill(),
      gone: (host, how, suspects, isCertain) => {
        listener.gone(host, how)
        if (!this.#quarantine.gone(host)) this.#pool.gone(host, how)
        else if (!host.isToEnd) listener.hostLost(how, 0, host)
        this.#attribute(host, suspects, isCertain)
        this.#placement.dispatch()
      },
    })
  }

  #startSmokeTestHost(): HostProcess {
    const { program, listener } = this.#options
    const ignore = (): void => {}
    // What the module scope logs here comes again at the first call, and a deploy is not the function's own work.
    const trial = { ...program, setup: { ...program.setup, prewarm: 0 } }
    const host = new HostProcess(++this.#lastId, trial, this.#hostPolicy, {
      ...listener,
      answered: ignore,
      unbegun: ignore,
      logged: ignore,
      usedInBackground: ignore,
      usedCpu: ignore,
      hasRoom: ignore,
      poisoned: ignore,
      lost: ignore,
      // That is what it makes one for.
      uncached: ignore,
    })
    host.demote()
    return host
  }

  get #hostPolicy(): HostPolicy {
    const { limit, scaling, hostStartTimeoutMs, poisonedDrainMs } = this.#options.policy
    const { saturationPercent, saturationWindowMs, panicWindowMs, shrinkWindowMs } = scaling
    const historyMs = Math.max(shrinkWindowMs, saturationWindowMs, panicWindowMs)
    const kill = { ...KILL_POLICY, drainMs: poisonedDrainMs }
    return { limit, historyMs, saturationPercent, startTimeoutMs: hostStartTimeoutMs, kill }
  }

  #attribute(host: HostProcess, suspects: readonly string[], isCertain: boolean): void {
    const nowMs = performance.now()
    for (const [functionName, level] of this.#strikes.add({ suspects, isCertain, wasAlone: host.isAlone }, nowMs)) {
      // From now on it runs elsewhere, or nowhere: its timers in shared hosts end as well.
      if (level !== 'free') this.#retireFunction(this.#pool.all, functionName)
      if (level === 'disabled') {
        this.#retireFunction(this.#quarantine.hosts, functionName)
        this.#refuseDisabled(functionName)
      }
      this.#options.listener.strikeAdded(functionName, level, this.#strikes.count(functionName, nowMs))
    }
  }

  #retireFunction(hosts: Iterable<HostProcess>, functionName: string): void {
    for (const host of hosts) host.connection.retireFunction(functionName)
  }

  #refuseDisabled(functionName: string): void {
    const reason = `${functionName} was disabled while the call waited.`
    const help = `An operator can enable it with "carpool enable ${functionName}".`
    this.#placement.refuse(functionName, new CarpoolError('function-disabled', `${reason} ${help}`))
  }

  /** A host takes calls from now on. */
  #onServing(host: HostProcess): void {
    if (this.#pool.ready.length >= this.#options.policy.scaling.minHosts) this.#untilReady.resolve()
    for (const revision of this.#options.keptWarm())
      if (!this.isQuarantined(revision.functionName)) void this.#bringUp(host, revision)
    this.#placement.dispatch()
  }

  async #bringUp(host: HostProcess, revision: Revision): Promise<void> {
    try {
      await this.#give(host, revision)
      await host.connection.start(revision)
    } catch {
      // A failure shows again at the first call.
    }
  }
}
