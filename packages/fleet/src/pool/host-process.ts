import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { initialHostLimit, nextHostLimit, type HostLimitPolicy } from '../scaling/host-limit.ts'
import { isCrash, suspectsOf } from '../health/suspects.ts'
import type { Reason, HostInfo, HostState } from '@carpool/core'
import { whole, type Signals } from '@carpool/wire'
import { HostConnection } from './host-connection.ts'
import { HostSignals } from '../health/host-signals.ts'
import { HostSlots } from '../placement/host-slots.ts'
import type { HostHarm, HostPolicy, HostProcessListener, HostProgram } from './host-types.ts'
import { HostWatchdog } from '../health/host-watchdog.ts'
import { demoteProcess, demoteStuck } from '../machine/demote.ts'
import { processUsage } from '../machine/process-usage.ts'
import { spawnHost, type SpawnedHost } from './spawn-host.ts'

/** A host that has work and says nothing for so long gets no more if there is another, in ms. */
const QUIET_MS = 1_000
/** Evidence that entries wait too long holds for so long, in ms. */
const DELAYED_MS = 1_000
/** How long it gets to end by itself, in ms. */
const STOP_MS = 1_000

/** What a host process is there for. */
export type HostRole = 'standby' | 'serving' | 'quarantine' | 'draining' | 'poisoned'

/** Spreads consecutive numbers evenly. */
const GOLDEN_RATIO = 0.618_033_988_75
const HOW_KILLED: Readonly<Partial<Record<Reason, string>>> = {
  'overdue': 'it did not answer in time',
  'silent': 'it did not answer any more',
  'drained': 'it was poisoned, and its other calls have ended',
  'drain-over': 'it was poisoned, and its other calls did not end in time',
}

/** One host process: what it is there for, how it fares, and its end. */
export class HostProcess {
  readonly id: number
  readonly startedAt = new Date()
  readonly #host: SpawnedHost
  readonly #child: ChildProcess
  readonly connection: HostConnection
  readonly #listener: HostProcessListener
  readonly slots: HostSlots
  readonly signals: HostSignals
  readonly #limitPolicy: HostLimitPolicy
  readonly #saturationPercent: number
  #limit: ReturnType<typeof initialHostLimit>
  #role: HostRole = 'standby'
  #readyAtMs: number | undefined
  #promotedAtMs = 0
  #idleSinceMs: number | undefined
  readonly #bornAtMs = performance.now()
  readonly #ended = Promise.withResolvers<void>()
  readonly #watchdog: HostWatchdog
  #stopLimit: NodeJS.Timeout | undefined
  #how = 'it closed its socket'
  readonly #longEntries = new Map<string, number>()
  /** Functions that were told to have harmed it. */
  readonly #blamed = new Set<string>()

  /** @throws CarpoolError `no-host` if the process cannot be started, as when the system has no descriptors or memory left */
  constructor(id: number, program: HostProgram, policy: HostPolicy, listener: HostProcessListener) {
    this.id = id
    this.#listener = listener
    const { startTimeoutMs, limit, historyMs, saturationPercent, kill } = policy
    const { memoryBudgetBytes } = program.setup
    this.#saturationPercent = saturationPercent
    this.#limitPolicy = limit
    this.#limit = initialHostLimit(limit)
    const { initial, targetMs } = limit
    this.slots = new HostSlots({ limit: initial, targetMs }, () => listener.hasRoom(this))
    this.signals = new HostSignals({ targetMs: limit.targetMs, keptMs: historyMs, nowMs: this.#bornAtMs })
    this.#host = spawnHost(program, program.cage)
    this.#child = this.#host.child
    this.connection = new HostConnection(this.#host.socket, program, this.#bornAtMs + startTimeoutMs, {
      ready: () => {
        this.#readyAtMs = performance.now()
        // Also the threads that it started before it was meant for quarantine.
        if (this.#role === 'quarantine') demoteProcess(this.#host.pid())
        listener.hasRoom(this)
      },
      answered: (call, result) => listener.answered(this, call, result),
      told: (signals) => this.#told(signals),
      logged: (log, text) => listener.logged(log, text),
      fetchStarted: (fetch, head, bytes) => listener.fetchStarted(this, fetch, head, bytes),
      fetchStopped: (fetch) => listener.fetchStopped(this, fetch),
      usedInBackground: (background) => listener.usedInBackground(this, background),
      usedCpu: (cpu) => listener.usedCpu(this, cpu),
      poisoned: (functionName, why) => this.#poison({ reason: why, suspects: [functionName], isCertain: true }),
      longEntry: (functionName, change) => {
        const count = (this.#longEntries.get(functionName) ?? 0) + change
        if (count > 0) this.#longEntries.set(functionName, count)
        else this.#longEntries.delete(functionName)
      },
      closed: (reason) => this.#lose(reason),
    })
    this.#child.once('error', (cause) => this.#lose(cause))
    this.#child.once('exit', (code, childSignal) => {
      const { exitCode, signal } = this.#host.endOf(code, childSignal)
      this.#how = signal ?? `exit code ${exitCode}`
      this.#lose(undefined)
    })
    if (this.#child.stderr !== null) {
      createInterface({ input: this.#child.stderr }).on('line', (line) => listener.complained(this, line))
    }
    this.#watchdog = new HostWatchdog({
      policy: kill,
      look: (nowMs) => ({
        inFlight: this.inFlight,
        silentMs: this.signals.silentMs(nowMs),
        isOverdue: this.connection.isOverdue(nowMs),
        memoryBytes: this.signals.memoryBytes,
        memoryBudgetBytes,
      }),
      onPoisoned: (reason) => this.#poison({ reason, suspects: this.#suspects(reason), isCertain: false }),
      onKilled: (reason) => this.#lose(new Error(HOW_KILLED[reason] ?? reason), reason),
    })
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
      pid: this.#host.pid(),
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
    if (this.#role !== 'serving' && this.#role !== 'quarantine') return this.#role
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

  /** From the start to the end of the age at which it is replaced, 0 to 1: hosts that were started together do not leave together. */
  get lot(): number {
    return (this.id * GOLDEN_RATIO) % 1
  }

  /** Invocations that were ever sent there. */
  get invocationsSent(): number {
    return this.connection.invocationsSent
  }

  /** Whether it was given the code of one function only. */
  get isAlone(): boolean {
    return this.connection.functions.size === 1
  }

  /** Since when it takes invocations, on the monotonic clock, in ms; undefined if it does not yet. */
  get servesSinceMs(): number | undefined {
    return this.#readyAtMs === undefined ? undefined : Math.max(this.#readyAtMs, this.#promotedAtMs)
  }

  /** From now on it takes invocations; for `quarantine` those of functions that have to be by themselves. */
  promote(role: 'serving' | 'quarantine' = 'serving'): void {
    this.#role = role
    this.#promotedAtMs = performance.now()
    if (role === 'quarantine') demoteProcess(this.#host.pid())
    if (this.takesInvocations) this.#listener.hasRoom(this)
  }

  /** From now on it takes none; what it has is finished. */
  drain(role: 'draining' | 'poisoned' = 'draining'): void {
    if (this.connection.isLost || this.#role === 'poisoned') return
    this.#role = role
  }

  /**
   * Whether a host that drains has nothing left to do: what nobody waits for has as long as in an isolate that was retired. It is asked more than
   * once, for what a last answer left behind is told a little later.
   */
  isDrained(nowMs: number, { settledMs, lingerMs }: { settledMs: number; lingerMs: number }): boolean {
    // The kill ladder ends those that are poisoned.
    if (this.#role !== 'draining') return false
    if (this.inFlight > 0) this.#idleSinceMs = undefined
    else this.#idleSinceMs ??= nowMs
    if (this.#idleSinceMs === undefined) return false
    if (nowMs - this.#idleSinceMs >= lingerMs) return true
    return this.signals.lingering === 0 && nowMs - this.#idleSinceMs >= settledMs
  }

  /** Adds what the system has the process at to its history. */
  sample(nowMs: number): void {
    this.signals.sample(processUsage(this.#host.pid()), this.inFlight > 0, nowMs)
  }

  /** How long ago it was ready; 0 if it never was. */
  get servedMs(): number {
    return this.#readyAtMs === undefined ? 0 : performance.now() - this.#readyAtMs
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
    return (this.serves || (this.#role === 'quarantine' && !this.connection.isLost)) && this.#readyAtMs !== undefined
  }

  /** Whether it has work and says nothing: it may be stuck. */
  get isQuiet(): boolean {
    return this.inFlight > 0 && this.signals.silentMs(performance.now()) > QUIET_MS
  }

  settleFetch(fetch: number, result: string, body: Uint8Array, bytes: { bytesOut: number; bytesIn: number }): void {
    this.connection.settleFetch(fetch, result, body, bytes)
  }

  /** Takes no more invocations from here on; ends when its socket is closed. */
  stop(): void {
    this.#role = 'draining'
    this.connection.close()
    this.#stopLimit ??= setTimeout(() => this.kill(), STOP_MS)
  }

  kill(): void {
    this.#host.kill()
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

  /** Functions that may be at the bottom of it when the process is found harmed, or nobody. Memory cannot be told apart. */
  #suspects(reason: Reason): string[] {
    if (this.isAlone) return [...this.connection.functions]
    return reason === 'memory' ? [] : [...new Set([...this.#longEntries.keys(), ...this.slots.runningFunctions])]
  }

  /** Another function's code may have harmed it too, so each time is told; of one function only once, however often it does it here. */
  #poison(given: HostHarm): void {
    if (this.connection.isLost) return
    const harm = { ...given, suspects: given.suspects.filter((name) => !this.#blamed.has(name)) }
    for (const name of harm.suspects) this.#blamed.add(name)
    this.#watchdog.poisoned()
    demoteStuck(this.#host.pid())
    this.#listener.poisoned(this, harm)
  }

  /** Whichever is noticed first, the socket's end or the process's: answers all that waits, once. */
  #lose(reason: Error | undefined, killed?: Reason): void {
    if (this.connection.isLost) return
    this.#watchdog.stop()
    // A host whose socket is gone or garbled is of no use any more.
    this.kill()
    const [inLongEntries, running] = [new Set(this.#longEntries.keys()), [...this.slots.runningFunctions]]
    // How it ended may not be known yet.
    const crash = Promise.withResolvers<boolean>()
    this.connection.lose((functionName) => (inLongEntries.has(functionName) ? crash.promise : undefined))
    const told = (): void => {
      clearTimeout(this.#stopLimit)
      this.#ended.resolve()
      // A process that exits breaks its socket, which may be noticed first.
      const how = reason === undefined || this.#child.exitCode !== null ? this.#how : reason.message
      const end = this.#host.endOf(this.#child.exitCode, this.#child.signalCode)
      // Who may have done it, whatever it was, is not given another host to do it to.
      const isKilledForHarm = killed !== undefined
      crash.resolve(isCrash(end) || isKilledForHarm)
      const isSilent = killed === 'silent' || killed === 'overdue'
      const suspects = isSilent ? [...new Set([...inLongEntries, ...running])] : suspectsOf(end, { inLongEntries, running })
      const unblamed = suspects.filter((name) => !this.#blamed.has(name))
      this.#listener.gone(this, how, unblamed, !isSilent && inLongEntries.size > 0)
    }
    if (this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined) told()
    else this.#child.once('exit', told)
  }
}
