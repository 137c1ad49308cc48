import type { HostLimitPolicy, QueueTimeoutPolicy, ScalingPolicy } from '@carpool/admission'
import {
  CarpoolError,
  NO_USAGE,
  monotonicClock,
  type Cancellation,
  type FailedStartsInfo,
  type FunctionLimits,
  type HostInfo,
  type HttpRequest,
  type InvocationResult,
  type Revision,
  type ScalingDecisionInfo,
} from '@carpool/core'
import { chooseHost } from './choose-host.ts'
import { CpuCosts } from './cpu-costs.ts'
import { HostProcess, type HostProcessListener, type HostProgram, type HostRevision, type RevisionCode } from './host-process.ts'
import type { Lane, SlotLease } from './host-slots.ts'
import { HostSupply } from './host-supply.ts'
import { Machine, type MachineLoad } from './machine/machine.ts'
import { PlaceQueue } from './place-queue.ts'
import { Scaler } from './scaler.ts'
import { TryOuts, type TryOut } from './try-out.ts'

/** A place in a host for one invocation. */
export interface Slot {
  /** Id of the host process; 0 if the client left before there was one. */
  readonly host: number
  /** Runs the invocation there. To be called once, at once. Never rejects. */
  invoke(id: string, request: HttpRequest, cancellation: Cancellation): Promise<InvocationResult>
}

export interface FleetPolicy {
  readonly scaling: ScalingPolicy
  readonly limit: HostLimitPolicy
  readonly queue: QueueTimeoutPolicy
  /** Most calls that may wait for a place. */
  readonly maxQueued: number
  readonly standbyHosts: number
  readonly hostStartTimeoutMs: number
}

export interface FleetOptions {
  readonly program: HostProgram
  readonly policy: FleetPolicy
  readonly machine: Machine
  /** Reads the code of a revision. */
  readonly codeOf: (revision: Revision) => Promise<RevisionCode>
  /** Whether a revision is what its function's name stands for now. */
  readonly isLive: (revision: Revision) => boolean
  /** The functions that are up in every host before they are called, and stay. */
  readonly isKeptWarm: (functionName: string) => boolean
  /** Their live revisions. */
  readonly keptWarm: () => Iterable<Revision>
  readonly listener: FleetListener
}

export interface FleetListener extends Omit<HostProcessListener, 'hasRoom' | 'stuck'> {
  /** A host that was not told to has ended, or could not be started; a new one is started in so many ms. */
  hostLost(how: string, respawnInMs: number, host?: HostProcess): void
  /** A host does not answer any more; another takes its place. */
  hostPoisoned(host: HostProcess): void
  hostStarted(result: 'ready' | 'failed'): void
  scaled(decision: ScalingDecisionInfo): void
}

/** A host with the right to run one invocation in it. */
interface Place {
  readonly host: HostProcess
  readonly lease: SlotLease
}

/** What such calls used says nothing of what the next one will. */
const CUT_SHORT: ReadonlySet<InvocationResult['outcome']> = new Set(['canceled', 'host-lost', 'isolate-lost', 'load-failed'])
/** What a call is taken to cost of which nothing is known, in ms. */
const UNKNOWN_COST_MS = 1

const CANCELED_IN_QUEUE: InvocationResult = {
  outcome: 'canceled',
  start: 'warm',
  usage: NO_USAGE,
  detail: 'The client left before there was a place for the call.',
}
const NO_SLOT: Slot = { host: 0, invoke: () => Promise.resolve(CANCELED_IN_QUEUE) }

/** The host processes: finds a place for each invocation in one of them, and keeps as many as the CPU calls for. */
export class Fleet {
  readonly #options: FleetOptions
  readonly #supply: HostSupply
  readonly #scaler: Scaler
  readonly #queue: PlaceQueue<Place>
  readonly #tryOuts: TryOuts
  readonly #costs = new CpuCosts()
  /** Wall limits of functions whose calls have waited in the queue. */
  readonly #wallMs = new Map<string, number>()
  readonly #untilReady = Promise.withResolvers<void>()
  #lastId = 0

  constructor(options: FleetOptions) {
    this.#options = options
    const { policy, machine, listener } = options
    this.#supply = new HostSupply({
      minHosts: policy.scaling.minHosts,
      maxHosts: policy.scaling.maxHosts,
      standbyHosts: policy.standbyHosts,
      canStartStandby: () => !this.#isMachineFull,
      start: () => this.#startHost(),
      onServing: (host) => this.#serves(host),
      onLost: (how, respawnInMs, host) => listener.hostLost(how, respawnInMs, host),
      onStart: (result) => listener.hostStarted(result),
    })
    this.#scaler = new Scaler({
      policy: policy.scaling,
      supply: this.#supply,
      machine,
      onDecision: (decision) => listener.scaled(decision),
    })
    this.#queue = new PlaceQueue({
      maxQueued: policy.maxQueued,
      timeouts: policy.queue,
      clock: monotonicClock,
      isOverloaded: () => this.isOverloaded,
      hasHost: () => this.#supply.ready.length > 0,
      costMs: (functionName) => this.#costMs(functionName),
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
    return [...this.#supply.all].map((host) => host.info)
  }

  get queued(): number {
    return this.#queue.size
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
    return this.isOverloaded && this.#queue.stands
  }

  /**
   * Finds a place for an invocation of a revision: at once if a host has room, else when its turn in the queue has come.
   * @throws CarpoolError `saturated` or `no-host` if there is none in time, `draining` if the fleet is closed meanwhile
   */
  place(revision: Revision, cancellation: Cancellation): Slot | Promise<Slot> {
    if (cancellation.canceled) return NO_SLOT
    const { functionName } = revision
    const place = this.#queue.sizeOf(functionName) === 0 ? this.#take(revision) : undefined
    if (place === undefined) return this.#waitForSlot(revision, cancellation)
    return place.host.has(revision.id) ? this.#slotIn(place, revision) : this.#prepareSlot(revision, place)
  }

  /** Brings a revision up in every host, so that its first call finds it warm. A failure shows again at the first call. */
  async warm(revision: HostRevision, code: RevisionCode): Promise<void> {
    const { ready } = this.#supply
    const keepWarm = this.#options.isKeptWarm(revision.functionName)
    for (const host of ready) host.give({ ...revision, keepWarm }, code)
    await Promise.all(ready.map((host) => host.start(revision)))
  }

  /** Has every host forget a revision once what it runs of it has ended. */
  retire(revision: string): void {
    for (const host of this.#supply.all) host.retire(revision)
  }

  /** What is known of a function is of no use any more. */
  forget(functionName: string): void {
    this.#costs.forget(functionName)
    this.#wallMs.delete(functionName)
  }

  /** Compiles and loads new code where no running function feels it. */
  tryOut(revision: HostRevision, source: string): Promise<TryOut> {
    return this.#tryOuts.run(revision, source)
  }

  /** Refuses what still waits for a place, and ends all host processes. */
  async close(): Promise<void> {
    this.#supply.close()
    this.#scaler.stop()
    this.#queue.close()
    this.#untilReady.reject(new CarpoolError('draining', 'The server is shutting down.'))
    this.#untilReady.promise.catch(() => {})
    this.#tryOuts.close()
    const hosts = [...this.#supply.all, ...this.#tryOuts.hosts]
    for (const host of hosts) host.stop()
    await Promise.all(hosts.map(({ ended }) => ended))
  }

  get #isMachineFull(): boolean {
    const { cores, busyCores } = this.machineLoad
    return busyCores >= (cores * this.#options.policy.scaling.machineFullPercent) / 100
  }

  #take(revision: Revision): Place | undefined {
    const { functionName } = revision
    const nowMs = performance.now()
    const lane = this.#laneOf(revision)
    const candidates = this.#supply.ready.map((host) => ({
      host,
      hasRoom: host.slots.hasRoom(lane),
      isWarm: host.has(revision.id),
      sharedDelayMs: host.signals.sharedDelayMs(nowMs),
      ofFunction: host.slots.runningOf(functionName),
      running: host.slots.running,
    }))
    const host = chooseHost(candidates, this.#costMs(functionName))?.host
    return host && { host, lease: host.slots.take(lane) }
  }

  async #waitForSlot(revision: Revision, cancellation: Cancellation): Promise<Slot> {
    this.#wallMs.set(revision.functionName, revision.limits.wallMs)
    const place = await this.#queue.wait(revision, cancellation)
    if (place === undefined) return NO_SLOT
    return place.host.has(revision.id) ? this.#slotIn(place, revision) : this.#prepareSlot(revision, place)
  }

  async #prepareSlot(revision: Revision, place: Place): Promise<Slot> {
    const { host, lease } = place
    try {
      await this.#give(host, revision)
    } catch (cause) {
      lease.end()
      throw cause
    }
    const slot = this.#slotIn(place, revision)
    return {
      host: slot.host,
      invoke: async (...call) => {
        const result = await slot.invoke(...call)
        // A deploy may have taken its place while the host and the code were waited for; nobody else would retire it then.
        if (!this.#options.isLive(revision)) host.retire(revision.id)
        return result
      },
    }
  }

  #slotIn({ host, lease }: Place, revision: Revision): Slot {
    return {
      host: host.id,
      invoke: async (id, request, cancellation) => {
        if (cancellation.canceled) {
          lease.end()
          return CANCELED_IN_QUEUE
        }
        const result = await host.invoke({ id, revision, slot: lease }, request, cancellation)
        if (!CUT_SHORT.has(result.outcome)) this.#costs.used(revision.functionName, result.usage.cpuUs / 1000)
        return result
      },
    }
  }

  async #give(host: HostProcess, revision: Revision): Promise<void> {
    const code = await this.#options.codeOf(revision)
    host.give({ ...revision, keepWarm: this.#options.isKeptWarm(revision.functionName) }, code)
  }

  #dispatch(): void {
    if (this.#queue.size === 0) return
    const hasPlace = (functionName: string): boolean => {
      const lane = this.#laneOf({ functionName, limits: { wallMs: this.#wallMs.get(functionName) ?? 0 } })
      return this.#supply.ready.some(({ slots }) => slots.hasRoom(lane))
    }
    this.#queue.dispatch(hasPlace, (revision) => this.#take(revision))
  }

  #laneOf({ functionName, limits: { wallMs } }: { functionName: string; limits: Pick<FunctionLimits, 'wallMs'> }): Lane {
    return { functionName, costMs: this.#costs.meanMs(functionName), wallMs }
  }

  #costMs(functionName: string): number {
    return this.#costs.meanMs(functionName) ?? UNKNOWN_COST_MS
  }

  #startHost(): HostProcess {
    const { program, listener } = this.#options
    return new HostProcess(++this.#lastId, program, this.#hostPolicy, {
      ...listener,
      hasRoom: () => this.#dispatch(),
      stuck: (host) => {
        listener.hostPoisoned(host)
        this.#supply.poison(host)
      },
      gone: (host, how) => {
        listener.gone(host, how)
        this.#supply.gone(host, how)
      },
    })
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
      { ...listener, logged: ignore, usedInBackground: ignore, usedCpu: ignore, hasRoom: ignore, stuck: ignore },
    )
  }

  get #hostPolicy() {
    const { limit, scaling, hostStartTimeoutMs } = this.#options.policy
    const { saturationPercent, saturationWindowMs, panicWindowMs, shrinkWindowMs } = scaling
    const historyMs = Math.max(shrinkWindowMs, saturationWindowMs, panicWindowMs)
    return { limit, historyMs, saturationPercent, startTimeoutMs: hostStartTimeoutMs }
  }

  #serves(host: HostProcess): void {
    if (this.#supply.ready.length >= this.#options.policy.scaling.minHosts) this.#untilReady.resolve()
    for (const revision of this.#options.keptWarm()) void this.#bringUp(host, revision)
    this.#dispatch()
  }

  async #bringUp(host: HostProcess, revision: Revision): Promise<void> {
    try {
      await this.#give(host, revision)
      await host.start(revision)
    } catch {
      // It shows again at the first call, where somebody waits for it.
    }
  }
}
