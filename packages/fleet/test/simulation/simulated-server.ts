import { CallQueue } from '@carpool/admission'
import { Call as ServerCall, type Revision } from '@carpool/core'
import { routedCall } from '../../../../test/support/call.ts'
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
const SETTLED_MS = 4_000
const HOST_BYTES = 100e6

const { head: HEAD } = routedCall('f')

/** A call as the server knows it. */
class Arrived extends ServerCall {
  readonly planned: Call
  isSettled = false

  constructor(planned: Call, revision: Revision, nowMs: number) {
    super({ id: '', functionName: planned.functionName, trigger: 'http', head: HEAD, hops: 0, startedAtMs: nowMs, cameMs: nowMs })
    this.planned = planned
    this.revision = revision
  }

  override end(): void {}
}

/** Server, hosts and cores, with the real queue and the real policies between them. */
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
  readonly #queue: CallQueue
  readonly #revisions = new Map<string, Revision>()
  readonly #limits = new Map<SimulatedHost, HostLimit>()
  readonly #costOf = new Map<string, number>()
  readonly #machineUsedMs: number[] = []
  #memory = initialScalingMemory(0)
  #overloadedUntilMs = -Infinity
  #standbyAtMs = 0
  #lastId = 0

  constructor(clock: FakeClock, settings: Partial<Settings> = {}) {
    this.#clock = clock
    this.#settings = { ...DEFAULTS, ...settings }
    this.machine = new Machine(clock, this.#settings.cores)
    this.#queue = new CallQueue({
      maxQueued: this.#settings.maxQueued,
      policy: this.#settings,
      isOverloaded: () => this.isOverloaded,
      hasHost: () => true,
      costMs: (functionName) => this.#costOf.get(functionName) ?? 1,
      onCanceled: (call) => this.#settle(call as Arrived, 'departed'),
      onRefused: (call) => this.#refused(call as Arrived),
      clock: () => clock.nowMs,
      every: (periodMs, sweep) => everyUntilStopped(clock, periodMs, sweep),
    })
    for (let n = 0; n < this.#settings.minHosts; n++) this.#addHost(0)
    clock.every(WINDOW_MS, () => this.#sample())
    clock.every(250, () => this.#scale())
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

  arrive(planned: Call): void {
    this.arrived++
    const call = new Arrived(planned, this.#revisionOf(planned), this.#clock.nowMs)
    this.#queue.push(call)
    this.#dispatch()
    if (planned.patienceMs !== undefined) this.#clock.after(planned.patienceMs, () => call.isSettled || call.cancel())
  }

  #revisionOf({ functionName, owner = functionName }: Call): Revision {
    let revision = this.#revisions.get(functionName)
    if (revision === undefined) this.#revisions.set(functionName, (revision = routedCall(functionName, { owner }).revision))
    return revision
  }

  #refused(call: Arrived): void {
    const { nowMs } = this.#clock
    if (nowMs >= SETTLED_MS) this.longestRefusalMs = Math.max(this.longestRefusalMs, nowMs - call.cameMs)
    this.#settle(call, 'refused')
  }

  #settle(call: Arrived, how: Settled): void {
    call.isSettled = true
    this.settled[how]++
    call.planned.settled?.(how, this.#clock.nowMs - call.cameMs)
  }

  #dispatch(): void {
    this.#queue.dispatch(
      (functionName) => this.#hostFor(functionName) !== undefined,
      (call) => {
        this.#send(this.#hostFor(call.functionName)!, call as Arrived)
        return true
      },
    )
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
    const { limit } = this.#limits.get(host)!
    const ofFunction = runningOf.get(functionName) ?? 0
    if (ofFunction >= flowLimit(this.#costOf.get(functionName), this.#settings.runDelayTargetMs)) return false
    if (running < limit) return true
    const { owner } = this.#revisions.get(functionName)!
    const owners = new Set([owner])
    let functions = 1
    let workMs = this.#costOf.get(functionName) ?? Infinity
    for (const [name, count] of runningOf) {
      workMs += count * (this.#costOf.get(name) ?? Infinity)
      if (name === functionName) continue
      const other = this.#revisions.get(name)!.owner
      owners.add(other)
      if (other === owner) functions++
    }
    const targetMs = this.#settings.runDelayTargetMs
    return hasRoom({ running, limit, ofFunction, owners: owners.size, functions, workMs, targetMs })
  }

  #send(host: SimulatedHost, call: Arrived): void {
    const { planned } = call
    if (call.isCanceled) this.sentInVain++
    host.begin(call.functionName)
    host.inFlight++
    let isRunning = true
    const isWanted = (): boolean => !call.isCanceled
    const enter = (index: number): void =>
      host.enter(call.functionName, {
        cpuMs: planned.cpuMs[index]!,
        isWanted,
        ended: () => {
          const isLast = index === planned.cpuMs.length - 1 || !isWanted()
          if (!isLast) this.#clock.after(planned.waitMs?.[index] ?? 0, () => enter(index + 1))
          this.#clock.after(MESSAGE_MS, () => {
            if (index === 0) this.#learnCost(planned)
            if (isRunning) host.end(call.functionName)
            isRunning = false
            if (isLast) {
              host.inFlight--
              this.#settle(call, isWanted() ? 'answered' : 'departed')
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

/** @returns what stops it */
function everyUntilStopped(clock: FakeClock, periodMs: number, happen: () => void): () => void {
  let isStopped = false
  const next = (): void => {
    if (isStopped) return
    happen()
    clock.after(periodMs, next)
  }
  clock.after(periodMs, next)
  return () => {
    isStopped = true
  }
}
