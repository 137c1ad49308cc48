import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Duplex } from 'node:stream'
import { initialHostLimit, nextHostLimit, type HostLimitPolicy } from '@carpool/admission'
import type { HostInfo, HostState } from '@carpool/core'
import { whole, type Signals } from '@carpool/wire'
import { HostConnection } from './host-connection.ts'
import { HostSignals } from './host-signals.ts'
import { HostSlots } from './host-slots.ts'
import type { HostPolicy, HostProcessListener, HostProgram } from './host-types.ts'
import { processUsage } from './machine/process-usage.ts'
import { spawnHost } from './spawn-host.ts'

const OVERDUE_CHECK_MS = 500
/** A host that has work and says nothing for so long is stuck, in ms, */
const STUCK_MS = 5_000
/** and after so much more it is ended, with the calls in it. */
const STUCK_GRACE_MS = 5_000
/** Evidence that entries wait too long holds for so long, in ms. */
const DELAYED_MS = 1_000
/** How long it gets to end by itself, in ms. */
const STOP_MS = 1_000

/** One host process: what it is there for, how it fares, and its end. */
export class HostProcess {
  readonly id: number
  readonly startedAt = new Date()
  readonly #child: ChildProcess
  readonly connection: HostConnection
  readonly #listener: HostProcessListener
  readonly slots: HostSlots
  readonly signals: HostSignals
  readonly #limitPolicy: HostLimitPolicy
  readonly #saturationPercent: number
  #limit: ReturnType<typeof initialHostLimit>
  /** What it is there for; a host in none of these serves. */
  #role: 'standby' | 'serving' | 'draining' | 'poisoned' = 'standby'
  #readyAtMs: number | undefined
  #promotedAtMs = 0
  #idleSinceMs: number | undefined
  readonly #bornAtMs = performance.now()
  readonly #ended = Promise.withResolvers<void>()
  readonly #overdueCheck: NodeJS.Timeout
  #stopLimit: NodeJS.Timeout | undefined
  #how = 'it closed its socket'
  #isLate = false
  #isStuck = false

  /** @throws CarpoolError `no-host` if the process cannot be started, as when the system has no descriptors or memory left */
  constructor(id: number, program: HostProgram, policy: HostPolicy, listener: HostProcessListener) {
    this.id = id
    this.#listener = listener
    const { startTimeoutMs, limit, historyMs, saturationPercent } = policy
    this.#saturationPercent = saturationPercent
    this.#limitPolicy = limit
    this.#limit = initialHostLimit(limit)
    const { initial, targetMs } = limit
    this.slots = new HostSlots({ limit: initial, targetMs }, () => listener.hasRoom(this))
    this.signals = new HostSignals({ targetMs: limit.targetMs, keptMs: historyMs, nowMs: this.#bornAtMs })
    this.#child = spawnHost(program)
    this.connection = new HostConnection(this.#child.stdio[3] as Duplex, program, this.#bornAtMs + startTimeoutMs, {
      ready: () => {
        this.#readyAtMs = performance.now()
        listener.hasRoom(this)
      },
      told: (signals) => this.#told(signals),
      logged: (log, text) => listener.logged(log, text),
      fetchStarted: (fetch, head, bytes) => listener.fetchStarted(this, fetch, head, bytes),
      fetchStopped: (fetch) => listener.fetchStopped(this, fetch),
      usedInBackground: (background) => listener.usedInBackground(this, background),
      usedCpu: (cpu) => listener.usedCpu(this, cpu),
      closed: (reason) => this.#lose(reason),
    })
    this.#child.once('error', (cause) => this.#lose(cause))
    this.#child.once('exit', (code, signal) => {
      this.#how = signal === null ? `exit code ${code}` : signal
      this.#lose(undefined)
    })
    if (this.#child.stderr !== null) {
      createInterface({ input: this.#child.stderr }).on('line', (line) => listener.complained(this, line))
    }
    this.#overdueCheck = setInterval(() => this.#endIfOverdue(), OVERDUE_CHECK_MS).unref()
  }

  /** Resolves when the host takes invocations; rejects if it is gone before. */
  get ready(): Promise<void> {
    return this.connection.untilReady
  }

  /** Resolves when the process is gone. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  get info(): HostInfo {
    const nowMs = performance.now()
    const { cpuCores, loopUtilization } = this.signals.lately
    return {
      id: this.id,
      pid: this.#child.pid ?? 0,
      state: this.state,
      startedAt: this.startedAt.toISOString(),
      inFlight: this.inFlight,
      running: this.slots.running,
      limit: this.slots.limit,
      runDelayMs: this.signals.runDelayMs(nowMs),
      cpuCores,
      loopUtilization,
      loopDelayMs: this.signals.loopDelayMs(nowMs),
      enteredIsolates: this.signals.entered,
      isolates: this.signals.isolates,
      memoryBytes: this.signals.memoryBytes,
      saturation: Math.max(cpuCores, loopUtilization),
    }
  }

  get state(): HostState {
    if (this.connection.isLost) return 'gone'
    if (this.#role !== 'serving') return this.#role
    if (this.#readyAtMs === undefined) return 'starting'
    return this.slots.isFull || (this.isDelayed && this.isBusy) ? 'saturated' : 'ready'
  }

  /** Whether entries have lately waited too long. */
  get isDelayed(): boolean {
    return this.signals.wasDelayed(DELAYED_MS, performance.now())
  }

  /** Whether it has lately filled its core or its event loop. */
  get isBusy(): boolean {
    const { cpuCores, loopUtilization } = this.signals.lately
    return Math.max(cpuCores, loopUtilization) >= this.#saturationPercent / 100
  }

  /** Whether it counts as capacity: it takes invocations, or will as soon as it is ready. */
  get serves(): boolean {
    return this.#role === 'serving' && !this.connection.isLost
  }

  /** Whether its end was asked for. */
  get isToEnd(): boolean {
    return this.#role === 'draining' || this.#role === 'poisoned'
  }

  get isStandby(): boolean {
    return this.#role === 'standby' && !this.connection.isLost
  }

  /** Since when it takes invocations, on the monotonic clock, in ms; undefined if it does not yet. */
  get servesSinceMs(): number | undefined {
    return this.#readyAtMs === undefined ? undefined : Math.max(this.#readyAtMs, this.#promotedAtMs)
  }

  /** From now on it takes invocations. */
  promote(): void {
    this.#role = 'serving'
    this.#promotedAtMs = performance.now()
    if (this.takesInvocations) this.#listener.hasRoom(this)
  }

  /** From now on it takes none; what it has is finished. */
  drain(role: 'draining' | 'poisoned' = 'draining'): void {
    if (!this.serves) return
    this.#role = role
  }

  /**
   * Whether a host that drains has nothing left to do: what nobody waits for has as long as in an isolate that was retired. It is asked more than
   * once, for what a last answer left behind is told a little later.
   */
  isDrained(nowMs: number, { settledMs, lingerMs }: { settledMs: number; lingerMs: number }): boolean {
    if (!this.isToEnd) return false
    if (this.inFlight > 0) this.#idleSinceMs = undefined
    else this.#idleSinceMs ??= nowMs
    if (this.#idleSinceMs === undefined) return false
    if (nowMs - this.#idleSinceMs >= lingerMs) return true
    return this.signals.lingering === 0 && nowMs - this.#idleSinceMs >= settledMs
  }

  /** Adds what the system has the process at to its history. */
  sample(nowMs: number): void {
    this.signals.sample(processUsage(this.#child.pid ?? 0), this.inFlight > 0, nowMs)
  }

  get livedMs(): number {
    return performance.now() - this.#bornAtMs
  }

  get inFlight(): number {
    return this.connection.invocations
  }

  get isReady(): boolean {
    return this.#readyAtMs !== undefined
  }

  get takesInvocations(): boolean {
    return this.serves && this.#readyAtMs !== undefined
  }

  settleFetch(fetch: number, result: string, body: Uint8Array): void {
    this.connection.settleFetch(fetch, result, body)
  }

  /** Takes no more invocations from here on; ends when its socket is closed. */
  stop(): void {
    this.#role = 'draining'
    this.connection.close()
    this.#stopLimit ??= setTimeout(() => this.kill(), STOP_MS)
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  #told(signals: Signals): void {
    const atMs = performance.now()
    this.signals.told(signals, atMs)
    this.slots.resumed = whole(signals.resumed)
    const { count, p90Us } = signals.runDelay
    const sample = { count: whole(count), p90Us: whole(p90Us), running: this.slots.running, atMs }
    this.#limit = nextHostLimit(this.#limit, sample, this.#limitPolicy)
    this.slots.limit = this.#limit.limit
    this.#listener.hasRoom(this)
  }

  /**
   * Two looks in a row must find the host late: when the server itself was held up, answers may lie unread in the socket, and between two
   * looks they are read.
   */
  #endIfOverdue(): void {
    const nowMs = performance.now()
    const wasLate = this.#isLate
    this.#isLate = this.connection.isOverdue(nowMs)
    if (wasLate && this.#isLate) this.#lose(new Error('it did not answer in time'))
    const wasStuck = this.#isStuck
    this.#isStuck = this.inFlight > 0 && this.signals.silentMs(nowMs) > STUCK_MS
    if (!wasStuck || !this.#isStuck) return
    if (this.serves) this.#listener.stuck(this)
    else if (this.signals.silentMs(nowMs) > STUCK_MS + STUCK_GRACE_MS) this.#lose(new Error('it did not answer any more'))
  }

  /** Whichever is noticed first, the socket's end or the process's: answers all that waits, once. */
  #lose(reason: Error | undefined): void {
    if (this.connection.isLost) return
    clearInterval(this.#overdueCheck)
    // A host whose socket is gone or garbled is of no use any more.
    this.kill()
    this.connection.lose()
    const told = (): void => {
      clearTimeout(this.#stopLimit)
      this.#ended.resolve()
      // A process that exits breaks its socket, which may be noticed first.
      const how = reason === undefined || this.#child.exitCode !== null ? this.#how : reason.message
      this.#listener.gone(this, how)
    }
    if (this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined) told()
    else this.#child.once('exit', told)
  }
}
