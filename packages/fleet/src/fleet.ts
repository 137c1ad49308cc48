import type { HostLimitPolicy } from './scaling/host-limit.ts'
import type { QueuePolicy } from '@carpool/admission'
import type { ScalingPolicy } from './scaling/scaling-types.ts'
import {
  KILL_POLICY,
  CarpoolError,
  type Call,
  type FailedStartsInfo,
  type HostInfo,
  type Revision,
  type ScalingDecisionInfo,
} from '@carpool/core'
import { Strikes, type Standing, type StrikePolicy } from './health/strikes.ts'
import type { RecyclingPolicy } from './health/recycling.ts'
import { HostProcess } from './pool/host-process.ts'
import type {
  CallListener,
  HostHarm,
  HostPolicy,
  HostProcessListener,
  HostProgram,
  HostRevision,
  RevisionCode,
} from './pool/host-types.ts'
import { HostSupply } from './pool/host-supply.ts'
import type { Machine, MachineLoad } from './machine/machine.ts'
import { Placement } from './placement/placement.ts'
import { Quarantine } from './health/quarantine.ts'
import { Scaler } from './scaling/scaler.ts'
import { TryOuts, type TryOut } from './pool/try-out.ts'

export interface FleetPolicy {
  readonly scaling: ScalingPolicy
  readonly limit: HostLimitPolicy
  readonly queue: QueuePolicy
  /** Most calls that may wait for a place. */
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

export interface FleetListener extends Omit<HostProcessListener, 'answered' | 'hasRoom' | 'poisoned' | 'gone'> {
  gone(host: HostProcess, how: string): void
  /** A host that was not told to has ended, or could not be started; a new one is started in so many ms. */
  hostLost(how: string, respawnInMs: number, host?: HostProcess): void
  /** What runs in a host harms it; another takes its place. */
  hostPoisoned(host: HostProcess, harm: HostHarm): void
  /** A function has harmed a host process, or may have. @param strikes how many count against it now */
  struck(functionName: string, standing: Standing, strikes: number): void
  hostStarted(result: 'ready' | 'failed'): void
  scaled(decision: ScalingDecisionInfo): void
}

/** The host processes: finds a place for each invocation in one of them, and keeps as many as the CPU calls for. */
export class Fleet {
  readonly #options: FleetOptions
  readonly #supply: HostSupply
  readonly #scaler: Scaler
  readonly #placement: Placement
  readonly #tryOuts: TryOuts
  readonly #strikes: Strikes
  readonly #quarantine: Quarantine
  /** Whose the functions were that have strikes. */
  readonly #struckOwners = new Map<string, string | undefined>()
  readonly #untilReady = Promise.withResolvers<void>()
  #lastId = 0

  constructor(options: FleetOptions) {
    this.#options = options
    const { policy, machine, listener } = options
    this.#supply = new HostSupply({
      minHosts: policy.scaling.minHosts,
      maxHosts: policy.scaling.maxHosts,
      standbyHosts: policy.standbyHosts,
      recycling: policy.recycling,
      canStartStandby: () => !this.#isMachineFull,
      start: () => this.#startHost(),
      onServing: (host) => this.#serves(host),
      onLost: (how, respawnInMs, host) => listener.hostLost(how, respawnInMs, host),
      onStart: (result) => listener.hostStarted(result),
    })
    this.#strikes = new Strikes(policy.strikes)
    this.#quarantine = new Quarantine({ maxHosts: policy.quarantineHosts, start: () => this.#startHost() })
    this.#scaler = new Scaler({
      policy: policy.scaling,
      supply: this.#supply,
      quarantine: this.#quarantine,
      machine,
      onDecision: (decision) => listener.scaled(decision),
    })
    this.#placement = new Placement({
      ...policy,
      readyHosts: (functionName) =>
        this.isQuarantined(functionName) ? this.#quarantine.readyFor(functionName) : this.#supply.ready,
      hasHost: () => this.#supply.ready.length > 0,
      isOverloaded: () => this.isOverloaded,
      give: (host, revision) => this.#give(host, revision),
      isLive: options.isLive,
      calls: options.calls,
    })
    this.#tryOuts = new TryOuts(() => this.#startTryOut())
  }

  /** Starts the hosts. Resolves when as many as there must be are ready; rejects only if it is closed before. */
  start(): Promise<void> {
    this.#supply.fill()
    this.#scaler.start()
    return this.#untilReady.promise
  }

  get hosts(): HostInfo[] {
    const quarantined = this.#quarantine.hosts.map((host) => {
      const quarantineOf = this.#quarantine.functionIn(host)
      return { ...host.info, ...(quarantineOf !== undefined && { quarantineOf }) }
    })
    return [...[...this.#supply.all].map((host) => host.info), ...quarantined]
  }

  /** Whether a function has harmed host processes, and runs in one of its own. */
  isQuarantined(functionName: string): boolean {
    return this.#strikes.standing(functionName, performance.now()) !== 'free'
  }

  /** An operator takes a function for harmless again. */
  absolve(functionName: string): void {
    this.#strikes.clear(functionName)
    this.#struckOwners.delete(functionName)
  }

  /** A revision is live from now on. What a former owner's code did is not the fault of whoever has the name now. */
  published({ functionName, owner }: Revision): void {
    if (this.#struckOwners.has(functionName) && this.#struckOwners.get(functionName) !== owner) this.absolve(functionName)
  }

  /** An operator has disabled a function: what waits is refused, and what it has left behind ends. */
  disable(functionName: string): void {
    for (const host of this.#supply.all) host.connection.retireFunction(functionName)
    this.#disabled(functionName)
  }

  get queued(): number {
    return this.#placement.queued
  }

  get decisions(): readonly ScalingDecisionInfo[] {
    return this.#scaler.decisions
  }

  get failedStarts(): FailedStartsInfo {
    return this.#supply.failedStarts
  }

  get machineLoad(): MachineLoad {
    return this.#scaler.machineLoad
  }

  get isReady(): boolean {
    return this.#supply.ready.length > 0
  }

  /**
   * Whether the CPU is full: entries have lately waited too long in every host, and the host is busy or the whole machine is. A wait alone may be
   * a burst that is over before it could be helped, or a function that loads.
   */
  get isOverloaded(): boolean {
    const { ready } = this.#supply
    const isMachineFull = this.#isMachineFull
    return ready.length > 0 && ready.every(({ isDelayed, isBusy }) => isDelayed && (isMachineFull || isBusy))
  }

  /** Whether the CPU is full and the queue stands: calls are refused because they would have to wait too long. */
  get isSaturated(): boolean {
    return this.isOverloaded && this.#placement.queueStands
  }

  /** Sends a routed call to a host: now if one has room, else when its turn in the queue has come. */
  place(call: Call): void {
    this.#placement.place(call)
  }

  /** Brings a revision up in every host, so that its first call finds it warm. A failure shows again at the first call. */
  async warm(revision: HostRevision, code: RevisionCode): Promise<void> {
    const { ready } = this.isQuarantined(revision.functionName) ? { ready: [] } : this.#supply
    const keepWarm = this.#options.isKeptWarm(revision.functionName)
    for (const host of ready) host.connection.give({ ...revision, keepWarm }, code)
    await Promise.all(ready.map((host) => host.connection.start(revision)))
  }

  /** Has every host forget a revision once what it runs of it has ended. */
  retire(revision: string): void {
    for (const host of this.#all) host.connection.retire(revision)
  }

  /** What is known of a function is of no use any more. */
  forget(functionName: string): void {
    this.#placement.forget(functionName)
  }

  /** Compiles and loads new code where no running function feels it. */
  tryOut(owner: string, revision: HostRevision, source: string): Promise<TryOut> {
    return this.#tryOuts.run(owner, revision, source)
  }

  /** Refuses what still waits for a place, and ends all host processes. */
  async close(): Promise<void> {
    this.#supply.close()
    this.#scaler.stop()
    this.#placement.close()
    this.#untilReady.reject(new CarpoolError('draining', 'The server is shutting down.'))
    this.#untilReady.promise.catch(() => {})
    this.#tryOuts.close()
    this.#quarantine.close()
    const hosts = [...this.#all, ...this.#tryOuts.hosts]
    for (const host of hosts) host.stop()
    await Promise.all(hosts.map(({ ended }) => ended))
  }

  get #all(): HostProcess[] {
    return [...this.#supply.all, ...this.#quarantine.hosts]
  }

  get #isMachineFull(): boolean {
    const { cores, busyCores } = this.machineLoad
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
      hasRoom: () => this.#placement.dispatch(),
      poisoned: (host, harm) => {
        if (this.#quarantine.hosts.includes(host)) host.drain('poisoned')
        else this.#supply.poison(host)
        listener.hostPoisoned(host, harm)
        this.#blame(host, harm.suspects, harm.isCertain)
        this.#placement.dispatch()
      },
      gone: (host, how, suspects, isCertain) => {
        listener.gone(host, how)
        if (!this.#quarantine.gone(host)) this.#supply.gone(host, how)
        else if (!host.isToEnd) listener.hostLost(how, 0, host)
        this.#blame(host, suspects, isCertain)
        this.#placement.dispatch()
      },
    })
  }

  #blame(host: HostProcess, suspects: readonly string[], isCertain: boolean): void {
    const nowMs = performance.now()
    for (const [functionName, standing] of this.#strikes.add({ suspects, isCertain, wasAlone: host.isAlone }, nowMs)) {
      this.#struckOwners.set(functionName, this.#options.ownerOf(functionName))
      // From now on it runs elsewhere, or nowhere: what it has left behind in timers ends as well.
      if (standing !== 'free') for (const one of this.#supply.all) one.connection.retireFunction(functionName)
      if (standing === 'disabled') this.#disabled(functionName)
      this.#options.listener.struck(functionName, standing, this.#strikes.count(functionName, nowMs))
    }
  }

  #disabled(functionName: string): void {
    for (const host of this.#quarantine.hosts) host.connection.retireFunction(functionName)
    this.#placement.refuse(
      functionName,
      new CarpoolError('function-disabled', `${functionName} was disabled while the call waited.`),
    )
  }

  #startTryOut(): HostProcess {
    const { program, listener } = this.#options
    const ignore = (): void => {}
    return new HostProcess(
      ++this.#lastId,
      { ...program, setup: { ...program.setup, prewarm: 0 } },
      this.#hostPolicy,
      // What the module scope logs while it is tried out comes again at the first call, which somebody asked for. A deploy is not the
      // function's work.
      {
        ...listener,
        answered: ignore,
        logged: ignore,
        usedInBackground: ignore,
        usedCpu: ignore,
        hasRoom: ignore,
        poisoned: ignore,
      },
    )
  }

  get #hostPolicy(): HostPolicy {
    const { limit, scaling, hostStartTimeoutMs, poisonedDrainMs } = this.#options.policy
    const { saturationPercent, saturationWindowMs, panicWindowMs, shrinkWindowMs } = scaling
    const historyMs = Math.max(shrinkWindowMs, saturationWindowMs, panicWindowMs)
    const kill = { ...KILL_POLICY, drainMs: poisonedDrainMs }
    return { limit, historyMs, saturationPercent, startTimeoutMs: hostStartTimeoutMs, kill }
  }

  #serves(host: HostProcess): void {
    if (this.#supply.ready.length >= this.#options.policy.scaling.minHosts) this.#untilReady.resolve()
    for (const revision of this.#options.keptWarm())
      if (!this.isQuarantined(revision.functionName)) void this.#bringUp(host, revision)
    this.#placement.dispatch()
  }

  async #bringUp(host: HostProcess, revision: Revision): Promise<void> {
    try {
      await this.#give(host, revision)
      await host.connection.start(revision)
    } catch {
      // It shows again at the first call, where somebody waits for it.
    }
  }
}
