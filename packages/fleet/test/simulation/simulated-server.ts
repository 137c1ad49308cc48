import { FairQueue, queueTimeoutMs, StandingQueue, takeOrder, type Queued } from '@carpool/admission'
import { initialHostLimit, nextHostLimit, type HostLimit } from '../../src/scaling/host-limit.ts'
import { flowLimit, hasRoom } from '../../src/placement/placement-policy.ts'
import { decideScaling, initialScalingMemory, type ScalingDecision } from '../../src/scaling/scaling-policy.ts'
import type { FakeClock } from './fake-clock.ts'
import { Machine } from './machine.ts'
import { DEFAULTS, type Call, type Settings, type Settled } from './settings.ts'
import { SimulatedHost, WINDOW_MS } from './simulated-host.ts'

/** From the server to a host or back, in ms: frames leave once for each turn of an event loop. */
const MESSAGE_MS = 0.25
const PROMOTION_MS = 20
const HOST_START_MS = 500
const SWEEP_MS = 5
const SETTLED_MS = 4_000
const HOST_BYTES = 100e6

interface Waiting {
  readonly call: Call
  readonly arrivedMs: number
  isDeparted: boolean
  isSettled: boolean
}

/** Server, hosts and cores, with the real policies between them. */
export class SimulatedServer {
  readonly machine: Machine
  readonly hosts = new Set<SimulatedHost>()
  readonly decisions: Array<ScalingDecision & { readonly atMs: number }> = []
  arrived = 0
  readonly settled: Record<Settled, number> = { answered: 0, refused: 0, departed: 0 }
  readonly p90Us: number[] = []
  /** Calls that were sent to a host although their client had left. */
  sentInVain = 0
  /** Of calls that were refused after the first few seconds: before that the queue takes what comes for a burst. */
  longestRefusalMs = 0
  readonly #clock: FakeClock
  readonly #settings: Settings
  readonly #queue: FairQueue<Waiting>
  readonly #standing: StandingQueue
  readonly #limits = new Map<SimulatedHost, HostLimit>()
  readonly #costOf = new Map<string, number>()
  readonly #machineUsedMs: number[] = []
  /** How many calls may be refused for those that came while the queue stood. */
  #refusable = 0
  #memory = initialScalingMemory(0)
  #overloadedUntilMs = -Infinity
  #standbyAtMs = 0
  #lastId = 0

  constructor(clock: FakeClock, settings: Partial<Settings> = {}) {
    this.#clock = clock
    this.#settings = { ...DEFAULTS, ...settings }
    this.machine = new Machine(clock, this.#settings.cores)
    this.#queue = new FairQueue(this.#settings.maxQueued)
    this.#standing = new StandingQueue(this.#settings)
    for (let n = 0; n < this.#settings.minHosts; n++) this.#addHost(0)
    clock.every(WINDOW_MS, () => this.#sample())
    clock.every(250, () => this.#scale())
    clock.every(SWEEP_MS, () => this.#expire())
  }

  get limits(): number[] {
    return [...this.#limits.values()].map(({ limit }) => limit)
  }

  get queued(): number {
    return this.#queue.size
  }

  /** Calls of which nothing has become yet. */
  get open(): number {
    return this.arrived - this.settled.answered - this.settled.refused - this.settled.departed
  }

  get isOverloaded(): boolean {
    return this.#clock.nowMs < this.#overloadedUntilMs
  }

  arrive(call: Call): void {
    this.arrived++
    if (this.#standing.lateMs(this.#clock.nowMs) >= this.#settings.intervalMs) {
      this.#refusable = Math.min(this.#refusable + 4, this.#queue.size)
    }
    const waiting: Waiting = { call, arrivedMs: this.#clock.nowMs, isDeparted: false, isSettled: false }
    const { entry, pushedOut } = this.#queue.push(call.functionName, waiting, {
      atMs: this.#clock.nowMs,
      costMs: this.#costOf.get(call.functionName) ?? 1,
    })
    if (pushedOut !== undefined) this.#refuse(pushedOut)
    this.#dispatch()
    if (call.patienceMs === undefined) return
    this.#clock.after(call.patienceMs, () => {
      if (waiting.isSettled) return
      waiting.isDeparted = true
      if (!this.#queue.remove(entry)) return
      this.#standing.lost(this.#clock.nowMs)
      this.#settle(waiting, 'departed')
    })
  }

  #queueState() {
    const { nowMs } = this.#clock
    return { isOverloaded: this.isOverloaded, lateMs: this.#standing.lateMs(nowMs) }
  }

  #expire(): void {
    this.#standing.look(this.#clock.nowMs, this.#queue.oldestAtMs)
    if (this.#queue.size === 0) return
    const timeoutMs = queueTimeoutMs(this.#queueState(), this.#settings)
    const { maxQueueMs } = this.#settings
    const most = timeoutMs < maxQueueMs ? this.#refusable : Infinity
    const expired = this.#queue.removeWhere(({ atMs }) => this.#clock.nowMs - atMs >= timeoutMs, most)
    this.#refusable -= Math.min(this.#refusable, expired.length)
    for (const entry of expired) this.#refuse(entry)
  }

  #refuse({ item, atMs }: Queued<Waiting>): void {
    const { nowMs } = this.#clock
    this.#standing.lost(nowMs)
    if (nowMs >= SETTLED_MS) this.longestRefusalMs = Math.max(this.longestRefusalMs, nowMs - atMs)
    this.#settle(item, 'refused')
  }

  #settle(waiting: Waiting, how: Settled): void {
    waiting.isSettled = true
    this.settled[how]++
    waiting.call.settled?.(how, this.#clock.nowMs - waiting.arrivedMs)
  }

  #dispatch(): void {
    const order = takeOrder(this.#queueState(), this.#settings)
    for (;;) {
      const entry = this.#queue.take((functionName) => this.#hostFor(functionName) !== undefined, order)
      if (entry === undefined) return
      this.#send(this.#hostFor(entry.key)!, entry.item)
    }
  }

  #hostFor(functionName: string): SimulatedHost | undefined {
    let chosen: SimulatedHost | undefined
    for (const host of this.hosts) {
      if (host.state !== 'ready' || (chosen !== undefined && chosen.running <= host.running)) continue
      if (this.#hasRoom(host, functionName)) chosen = host
    }
    return chosen
  }

  #hasRoom(host: SimulatedHost, functionName: string): boolean {
    const { running, runningOf } = host
    const limit = this.#settings.isLimited ? this.#limits.get(host)!.limit : Infinity
    const ofFunction = runningOf.get(functionName) ?? 0
    if (this.#settings.isLimited && ofFunction >= flowLimit(this.#costOf.get(functionName), this.#settings.runDelayTargetMs))
      return false
    if (running < limit) return true
    const functions = new Set([...runningOf.keys(), functionName]).size
    let workMs = this.#costOf.get(functionName) ?? Infinity
    for (const [name, count] of runningOf) workMs += count * (this.#costOf.get(name) ?? Infinity)
    return hasRoom({ running, limit, ofFunction, functions, workMs, targetMs: this.#settings.runDelayTargetMs })
  }

  #send(host: SimulatedHost, waiting: Waiting): void {
    const { call } = waiting
    if (waiting.isDeparted) this.sentInVain++
    host.begin(call.functionName)
    host.inFlight++
    let isRunning = true
    const isWanted = (): boolean => !waiting.isDeparted
    const enter = (index: number): void =>
      host.enter(call.functionName, {
        cpuMs: call.cpuMs[index]!,
        isWanted,
        ended: () => {
          const isLast = index === call.cpuMs.length - 1 || !isWanted()
          if (!isLast) this.#clock.after(call.waitMs?.[index] ?? 0, () => enter(index + 1))
          this.#clock.after(MESSAGE_MS, () => {
            if (index === 0) this.#learnCost(call)
            if (isRunning) host.end(call.functionName)
            isRunning = false
            if (isLast) {
              host.inFlight--
              this.#settle(waiting, isWanted() ? 'answered' : 'departed')
              this.#leaveIfDrained(host)
            }
            this.#dispatch()
          })
        },
      })
    this.#clock.after(MESSAGE_MS, () => enter(0))
  }

  #learnCost({ functionName, cpuMs }: Call): void {
    const sum = cpuMs.reduce((sum, ms) => sum + ms, 0)
    const known = this.#costOf.get(functionName) ?? sum
    this.#costOf.set(functionName, known + 0.1 * (sum - known))
  }

  #sample(): void {
    const { nowMs } = this.#clock
    const targetMs = this.#settings.runDelayTargetMs
    this.#machineUsedMs.push(this.machine.usedMs)
    for (const host of this.hosts) {
      if (host.state === 'starting') continue
      const sample = host.sample(targetMs)
      this.p90Us.push(sample.p90Us)
      if (sample.p90Us > targetMs * 1000) this.#overloadedUntilMs = nowMs + 1000
      const limit = nextHostLimit(
        this.#limits.get(host)!,
        { ...sample, running: host.running, atMs: nowMs },
        { ...this.#settings, targetMs },
      )
      this.#limits.set(host, limit)
    }
    this.#dispatch()
  }

  #scale(): void {
    const { nowMs } = this.#clock
    const { panicWindowMs, saturationWindowMs, shrinkWindowMs, cores, memoryBytes } = this.#settings
    const used = this.#machineUsedMs.slice(-11)
    const hosts = [...this.hosts].map((host) => ({
      id: host.id,
      state: host.state,
      readySinceMs: host.readySinceMs,
      memoryBytes: HOST_BYTES,
      panic: host.load(panicWindowMs),
      steady: host.load(saturationWindowMs),
      long: host.load(shrinkWindowMs),
    }))
    const { decision, memory } = decideScaling(
      {
        atMs: nowMs,
        cores,
        machineBusyCores: (used.at(-1)! - used[0]!) / Math.max(1, (used.length - 1) * WINDOW_MS),
        freeBytes: memoryBytes - hosts.length * HOST_BYTES,
        hosts,
      },
      this.#memory,
      this.#settings,
    )
    this.#memory = memory
    this.decisions.push({ ...decision, atMs: nowMs })
    if (decision.action === 'grow') for (let n = 0; n < decision.hosts; n++) this.#promoteStandby()
    if (decision.action === 'shrink') {
      for (const host of this.hosts) {
        if (host.id !== decision.host) continue
        host.state = 'draining'
        this.#leaveIfDrained(host)
      }
    }
  }

  #promoteStandby(): void {
    const { nowMs } = this.#clock
    this.#addHost(Math.max(PROMOTION_MS, this.#standbyAtMs - nowMs))
    this.#standbyAtMs = Math.max(nowMs, this.#standbyAtMs) + HOST_START_MS
  }

  #addHost(startMs: number): void {
    const host = new SimulatedHost(++this.#lastId, this.#clock, this.machine)
    this.hosts.add(host)
    this.#limits.set(host, initialHostLimit(this.#settings))
    const becomeReady = (): void => {
      host.state = 'ready'
      host.readySinceMs = this.#clock.nowMs
      this.#dispatch()
    }
    if (startMs === 0) becomeReady()
    else this.#clock.after(startMs, becomeReady)
  }

  #leaveIfDrained(host: SimulatedHost): void {
    if (host.state === 'draining' && host.inFlight === 0) {
      this.hosts.delete(host)
      this.#limits.delete(host)
    }
  }
}
