import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Call, Holder, HostInfo, HostState, InvocationResult, KillPolicy, Reason } from '@carpool/core'
import type { Background, Fetch, HostCpu, Log, LoadReport } from '@carpool/wire'
import { HostLoad } from '../health/host-load.ts'
import { HostWatchdog } from '../health/host-watchdog.ts'
import { Standstill } from '../health/standstill.ts'
import { HostSuspects, suspectsOf, type HostHarm } from '../health/suspects.ts'
import { HostSlots } from '../placement/host-slots.ts'
import type { HostLimitPolicy } from '../scaling/host-limit.ts'
import { HostConnection, type AnswerKind, type FetchedBytes, type StreamFromHost, type StreamToHost } from './host-connection.ts'
import type { StreamSource, StreamTarget } from './joined-streams.ts'
import { demoteProcess, demoteStuck, isCrash, processUsage, spawnHost, type HostProgram, type SpawnedHost } from './os-process.ts'

/** What a host process is kept to. */
export interface HostPolicy {
  /** Longest time until it is ready, in ms. */
  readonly startTimeoutMs: number
  readonly limit: HostLimitPolicy
  /** Share of a core, or of the event loop's time, from which on it is busy. */
  readonly saturationPercent: number
  /** How long its load is remembered, in ms. */
  readonly historyMs: number
  readonly kill: KillPolicy
}

/** Called on the server's loop. */
export interface HostProcessListener {
  /** Called after the call's slot was given back. */
  answered(host: HostProcess, call: Call, result: InvocationResult): void
  /** The host has not begun a call and will not. Called after the call's slot was given back. */
  unbegun(host: HostProcess, call: Call): void
  logged(log: Log, text: string): void
  /** A function fetches: answer with {@link HostProcess.settleFetch}. */
  fetchStarted(host: HostProcess, fetch: Fetch, head: string, body: Uint8Array): void
  fetchStopped(host: HostProcess, fetch: number, counted: FetchedBytes): void
  /** The bodies of a fetch that is open. */
  fetchBodies(host: HostProcess, fetch: number): (StreamSource & StreamTarget) | undefined
  /** A function opens a socket, or something is said of one or of the bodies of a fetch: see {@link HostProcess.sayOfStream}. */
  streamSaid(host: HostProcess, message: StreamFromHost, text: string, body: Uint8Array): void
  /** An answer that streams, or a WebSocket, has begun or ended. */
  answersChanged(functionName: string, kind: AnswerKind, change: 1 | -1): void
  /** A function used something outside of any call. */
  usedInBackground(host: HostProcess, background: Background): void
  /** Where the CPU time of the process went so far. */
  usedCpu(host: HostProcess, cpu: HostCpu): void
  /** It had to compile a revision, because it was given no code cache of it, or V8 has rejected that. */
  uncached(revision: string): void
  /** The process wrote a line to its own standard error: never user output. */
  onStderr(host: HostProcess, line: string): void
  /** What runs there harms it, so it is to get nothing more. Called again for further functions. */
  poisoned(host: HostProcess, harm: HostHarm): void
  /** A slot was given back, or there are more of them. */
  hasRoom(host: HostProcess, freedBy?: Holder): void
  /** It takes no calls any more, and {@link gone} comes when the system has ended it, which takes a while. Called once. */
  lost(host: HostProcess): void
  /**
   * The process is gone. Called once, after every call in it was answered, but for those whose answer waits to know how the
   * process ended.
   * @param suspects functions whose code may have brought it down; none if somebody ended it
   * @param isCertain whether it must have been one of them
   */
  gone(host: HostProcess, how: string, suspects: readonly string[], isCertain: boolean): void
}

/** What a host process is there for. */
export type HostRole = 'standby' | 'serving' | 'quarantine' | 'draining' | 'poisoned'

/** How often a process that starts is looked at that is to have less of the machine, in ms. */
const STARTING_MS = 10
/** What it has of a busy core: a third of what others have. */
const TRIAL_NICENESS = 5
/** How long it gets to end by itself, in ms. */
const STOP_MS = 1_000
/** A host that drains waits so long for what a last answer may have left behind, in ms: reports of that come a little later. */
const SETTLED_MS = 1_500
/** Background work gets so long to end, in ms; as in an isolate that is retired. */
const LINGER_MS = 30_000
const HOW_KILLED: Readonly<Partial<Record<Reason, string>>> = {
  'overdue': 'it did not answer in time',
  'silent': 'it did not answer any more',
  'drained': 'it was poisoned, and its other calls have ended',
  'drain-over': 'it was poisoned, and its other calls did not end in time',
}

/** One host process: its role, its load, and its end. */
export class HostProcess {
  readonly id: number
  readonly startedAt = new Date()
  readonly connection: HostConnection
  readonly slots: HostSlots
  readonly load: HostLoad
  readonly #process: SpawnedHost
  readonly #child: ChildProcess
  readonly #listener: HostProcessListener
  readonly #watchdog: HostWatchdog
  readonly #suspects: HostSuspects
  readonly #bornAtMs = performance.now()
  readonly #ended = Promise.withResolvers<void>()
  #role: HostRole = 'standby'
  #readyAtMs: number | undefined
  #promotedAtMs = 0
  #idleSinceMs: number | undefined
  #isSilent = false
  readonly #standstill = new Standstill()
  #killTimer: NodeJS.Timeout | undefined
  #how = 'it closed its socket'

  /** @throws CarpoolError `no-host` if the process cannot be started, as when the system has no descriptors or memory left */
  constructor(id: number, program: HostProgram, policy: HostPolicy, listener: HostProcessListener) {
    this.id = id
    this.#listener = listener
    const { startTimeoutMs, limit, historyMs: keptMs, saturationPercent, kill } = policy
    const { memoryBudgetBytes } = program.setup
    this.#suspects = new HostSuspects(memoryBudgetBytes)
    this.slots = new HostSlots(limit, (freedBy) => listener.hasRoom(this, freedBy))
    this.load = new HostLoad({ targetMs: limit.targetMs, saturationPercent, keptMs, nowMs: this.#bornAtMs })
    this.#process = spawnHost(program, program.launcher)
    this.#child = this.#process.child
    this.connection = new HostConnection(this.#process.socket, program, this.#bornAtMs + startTimeoutMs, {
      ready: () => {
        this.#readyAtMs = performance.now()
        // Again: it has started threads since it was put into quarantine.
        if (this.#role === 'quarantine') demoteProcess(this.#process.pid())
        listener.hasRoom(this)
      },
      answered: (call, result) => listener.answered(this, call, result),
      unbegun: (call) => listener.unbegun(this, call),
      onReport: (report) => this.#onReport(report),
      logged: (log, text) => listener.logged(log, text),
      fetchStarted: (fetch, head, bytes) => listener.fetchStarted(this, fetch, head, bytes),
      fetchStopped: (fetch, counted) => listener.fetchStopped(this, fetch, counted),
      fetchBodies: (fetch) => listener.fetchBodies(this, fetch),
      streamSaid: (message, text, bytes) => listener.streamSaid(this, message, text, bytes),
      answersChanged: (functionName, kind, change) => listener.answersChanged(functionName, kind, change),
      usedInBackground: (background) => listener.usedInBackground(this, background),
      usedCpu: (cpu) => listener.usedCpu(this, cpu),
      poisoned: (functionName, why) => this.#poisonedBy(functionName, why),
      uncached: (revision) => listener.uncached(revision),
      longEntry: (functionName, change) => this.#suspects.longEntry(functionName, change),
      grown: (functionName, heldBytes) => this.#suspects.grown(functionName, heldBytes, performance.now()),
      closed: (reason) => this.#lose(reason),
    })
    this.#child.once('error', (cause) => this.#lose(cause))
    this.#child.once('exit', (code, childSignal) => {
      const { exitCode, signal, isOutOfMemory } = this.#process.endOf(code, childSignal)
      this.#how = isOutOfMemory === true ? 'it ran out of memory' : (signal ?? `exit code ${exitCode}`)
      this.#lose(undefined)
    })
    if (this.#child.stderr !== null) {
      createInterface({ input: this.#child.stderr }).on('line', (line) => listener.onStderr(this, line))
    }
    this.#watchdog = new HostWatchdog({
      policy: kill,
      evidence: (nowMs) => ({
        inFlight: this.inFlight,
        silentMs: this.load.silentMs(nowMs),
        isOverdue: this.connection.isOverdue(nowMs),
        memoryBytes: this.load.memoryBytes,
        memoryBudgetBytes,
      }),
      onPoisoned: (reason) => this.#poison({ reason, suspects: this.#suspectsOf(reason), isCertain: false }),
      onKilled: (reason) => this.#lose(new Error(HOW_KILLED[reason] ?? reason), reason),
    })
  }

  /** Resolves when the host takes calls; rejects if it is gone before. */
  get ready(): Promise<void> {
    return this.connection.untilReady
  }

  /** Resolves when the process is gone. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  get info(): HostInfo {
    const nowMs = performance.now()
    const { cpuCores, loopUtilization } = this.load.lately
    return {
      id: this.id,
      pid: this.#process.pid(),
      state: this.state,
      startedAt: this.startedAt.toISOString(),
      inFlight: this.inFlight,
      running: this.slots.running,
      limit: this.slots.limit,
      runDelayMs: this.load.runDelayMs(nowMs),
      cpuCores,
      loopUtilization,
      loopDelayMs: this.load.loopDelayMs(nowMs),
      enteredIsolates: this.load.entered,
      isolates: this.load.isolates,
      memoryBytes: this.load.memoryBytes,
      saturation: Math.max(cpuCores, loopUtilization),
    }
  }

  get state(): HostState {
    if (this.connection.isLost) return 'gone'
    if (this.#role !== 'serving' && this.#role !== 'quarantine') return this.#role
    if (this.#readyAtMs === undefined) return 'starting'
    return this.slots.isFull || this.isOverloaded || this.isSilent ? 'saturated' : 'ready'
  }

  /** Whether entries have lately waited too long, and it has filled its core or its event loop. */
  get isOverloaded(): boolean {
    return this.isDelayed && this.load.isBusy
  }

  /** Whether entries have lately waited too long. */
  get isDelayed(): boolean {
    return this.load.isDelayed(performance.now())
  }

  /** Whether it counts as capacity: it takes calls, or will as soon as it is ready. */
  get serves(): boolean {
    return this.#role === 'serving' && !this.connection.isLost
  }

  get takesCalls(): boolean {
    return (this.serves || (this.#role === 'quarantine' && !this.connection.isLost)) && this.#readyAtMs !== undefined
  }

  /** Whether its end was asked for. */
  get isToEnd(): boolean {
    return this.#role === 'draining' || this.#role === 'poisoned'
  }

  get isStandby(): boolean {
    return this.#role === 'standby' && !this.connection.isLost
  }

  get isReady(): boolean {
    return this.#readyAtMs !== undefined
  }

  /**
   * Whether it had work and had reported nothing for a while when it was last looked at, and has not since: it may be stuck. It
   * gets no more; others take its calls.
   */
  get isSilent(): boolean {
    return this.#isSilent
  }

  /** Whether it was given the code of one function only. */
  get isAlone(): boolean {
    return this.connection.functions.size === 1
  }

  get inFlight(): number {
    return this.connection.inFlight
  }

  /** Calls that were ever sent there. */
  get callsSent(): number {
    return this.connection.callsSent
  }

  /** Since when it takes calls, on the monotonic clock, in ms; undefined if it does not yet. */
  get servesSinceMs(): number | undefined {
    return this.#readyAtMs === undefined ? undefined : Math.max(this.#readyAtMs, this.#promotedAtMs)
  }

  /** How long ago it was ready; 0 if it never was. */
  get servedMs(): number {
    return this.#readyAtMs === undefined ? 0 : performance.now() - this.#readyAtMs
  }

  get livedMs(): number {
    return performance.now() - this.#bornAtMs
  }

  /** From now on it takes calls; for `quarantine` those of functions that have to be by themselves. */
  promote(role: 'serving' | 'quarantine' = 'serving'): void {
    this.#role = role
    this.#promotedAtMs = performance.now()
    if (role === 'quarantine') demoteProcess(this.#process.pid())
    if (this.takesCalls) this.#listener.hasRoom(this)
  }

  /** Nobody is served there: from now on it has less of a busy machine than those who are, for good. */
  demote(): void {
    const demote = (): void => demoteProcess(this.#process.pid(), TRIAL_NICENESS)
    demote()
    // Until it is ready the programs of a sandbox become it, in a session of its own.
    const timer = setInterval(demote, STARTING_MS)
    const stop = (): void => clearInterval(timer)
    this.ready.then(stop, stop)
  }

  /** From now on it takes none, until it is promoted again; what it has is finished. */
  standDown(): void {
    this.#role = 'standby'
  }

  /** From now on it takes none; what it has is finished. */
  drain(role: 'draining' | 'poisoned' = 'draining'): void {
    if (this.connection.isLost || this.#role === 'poisoned') return
    this.#role = role
  }

  /** Whether a host that drains has nothing left to do. Called four times a second. The kill ladder ends poisoned hosts. */
  isDrained(nowMs: number): boolean {
    if (this.#role !== 'draining') return false
    if (this.inFlight > 0) this.#idleSinceMs = undefined
    else this.#idleSinceMs ??= nowMs
    if (this.#idleSinceMs === undefined) return false
    if (nowMs - this.#idleSinceMs >= LINGER_MS) return true
    return this.load.lingering === 0 && nowMs - this.#idleSinceMs >= SETTLED_MS
  }

  /** Adds what the system counts of the process to its load. Called four times a second. */
  sample(nowMs: number): void {
    const usage = processUsage(this.#process.pid())
    this.load.sample(usage, this.inFlight > 0, nowMs)
    this.#standstill.sample(usage, this.callsSent, nowMs)
    this.#isSilent = this.load.isSilent(nowMs)
  }

  /** The server was held up for so long: nothing of that is the host's silence. */
  excuse(lateMs: number, nowMs: number): void {
    this.load.excuse(lateMs, nowMs)
  }

  /** Has the calls begin elsewhere of which it is certain that they never began here. For a host that is silent. */
  takeBackUnread(): void {
    const { unreadAfter } = this.#standstill
    if (unreadAfter !== undefined) this.connection.takeBackAfter(unreadAfter)
  }

  /** Has the watchdog look. Called twice a second. */
  watch(nowMs: number): void {
    if (!this.connection.isLost) this.#watchdog.look(nowMs)
  }

  settleFetch(holder: Holder, fetch: number, result: string, body: Uint8Array, bytes: FetchedBytes): void {
    this.connection.settleFetch(holder, fetch, result, body, bytes)
  }

  sayOfStream(holder: Holder, message: StreamToHost, text?: string, body?: Uint8Array): void {
    this.connection.sayOfStream(holder, message, text, body)
  }

  /** Takes no more calls from here on; ends when its socket is closed. */
  stop(): void {
    this.#role = 'draining'
    this.connection.close()
    this.#killTimer ??= setTimeout(() => this.kill(), STOP_MS)
  }

  kill(): void {
    this.#process.kill()
  }

  /** Whether it says nothing because the process stands still as a whole. */
  get #isFrozen(): boolean {
    return this.#isSilent && this.#standstill.isFrozen
  }

  #onReport(report: LoadReport): void {
    const atMs = performance.now()
    this.#isSilent = false
    this.#standstill.heard()
    this.load.onReport(report, atMs)
    this.slots.onReport(report, atMs)
    this.#listener.hasRoom(this)
  }

  /**
   * The functions that may have harmed the process when the watchdog finds it harmed. Memory cannot be attributed, and what
   * uses no CPU time was not brought to a stop by code.
   */
  #suspectsOf(reason: Reason): string[] {
    if (this.#isFrozen) return []
    if (this.isAlone) return [...this.connection.functions]
    return reason === 'memory' ? [] : this.#suspects.stopped([...this.#suspects.inLongEntries, ...this.slots.runningFunctions])
  }

  #poisonedBy(functionName: string, why: 'stuck' | 'gave-up'): void {
    const suspects = why === 'gave-up' ? [functionName] : this.#suspects.stopped([functionName])
    if (why === 'gave-up') this.#suspects.gaveUp()
    this.#poison({ reason: why, suspects, isCertain: true })
  }

  /** Each harm is passed on, for further functions may harm the process too; but each function only once. */
  #poison(harm: HostHarm): void {
    if (this.connection.isLost) return
    this.#watchdog.poisoned()
    demoteStuck(this.#process.pid())
    this.#listener.poisoned(this, { ...harm, suspects: this.#suspects.attribute(harm.suspects) })
  }

  /** Called when the socket ends, the process ends, or the watchdog kills it; the first of them answers all calls, once. */
  #lose(reason: Error | undefined, killed?: Reason): void {
    if (this.connection.isLost) return
    // A host whose socket is gone or garbled is of no use any more.
    this.kill()
    const { inLongEntries } = this.#suspects
    const takers = this.#suspects.takers(performance.now())
    const running = [...this.slots.runningFunctions]
    const isFrozen = this.#isFrozen
    // How it ended may not be known yet.
    const isCrashed = Promise.withResolvers<boolean>()
    const mayHaveHarmed = new Set([...inLongEntries, ...takers])
    this.connection.lose((functionName) => (mayHaveHarmed.has(functionName) ? isCrashed.promise : undefined))
    this.#listener.lost(this)
    const onExit = (): void => {
      clearTimeout(this.#killTimer)
      this.#ended.resolve()
      // A process that exits breaks its socket, which may be noticed first.
      const how = reason === undefined || this.#child.exitCode !== null ? this.#how : reason.message
      const end = this.#process.endOf(this.#child.exitCode, this.#child.signalCode)
      // A call that may have harmed the host is not begun again in another one.
      isCrashed.resolve(isCrash(end) || end.isOutOfMemory === true || (killed !== undefined && !isFrozen))
      const isStuck = (killed === 'silent' || killed === 'overdue') && !isFrozen
      const suspects = isStuck
        ? this.#suspects.stopped([...inLongEntries, ...running])
        : suspectsOf(end, { inLongEntries, running, takers })
      const isCertain = end.isOutOfMemory === true ? takers.length > 0 : !isStuck && inLongEntries.size > 0
      this.#listener.gone(this, how, this.#suspects.attribute(suspects), isCertain)
    }
    if (this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined) onExit()
    else this.#child.once('exit', onExit)
  }
}
