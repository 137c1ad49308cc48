import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Duplex } from 'node:stream'
import { initialHostLimit, nextHostLimit, type HostLimitPolicy } from '@carpool/admission'
import {
  CarpoolError,
  type Cancellation,
  type HostInfo,
  type HostState,
  type HttpRequest,
  type InvocationResult,
  type Revision,
} from '@carpool/core'
import {
  Connection,
  unpackUsage,
  whole,
  type Background,
  type Fetch,
  type Frame,
  type HostCpu,
  type HostStart,
  type Log,
  type Setup,
  type StartResult,
  type Signals,
  type ToHost,
  type ToServer,
} from '@carpool/wire'
import { HostSignals } from './host-signals.ts'
import { HostSlots, type SlotLease } from './host-slots.ts'
import { processUsage } from './machine/process-usage.ts'
import { PendingReplies } from './pending-replies.ts'
import { ResponseHeadReader } from './response-head.ts'

/** The code of a revision as a host needs it. */
export interface RevisionCode {
  readonly source: string
  readonly codeCache?: Uint8Array
}

/** How to start a host process. */
export interface HostProgram {
  /** Path of the Node.js binary. */
  readonly nodePath: string
  readonly nodeArguments: readonly string[]
  readonly setup: Setup
  /** The guest runtime's script. */
  readonly runtime: string
}

/** What a host process is kept to. */
export interface HostPolicy {
  /** Longest time until it is ready, in ms. */
  readonly startTimeoutMs: number
  readonly limit: HostLimitPolicy
  /** Share of a core, or of the event loop's time, from which on it is busy. */
  readonly saturationPercent: number
  /** How long its load is remembered, in ms. */
  readonly historyMs: number
}

export interface HostProcessListener {
  logged(log: Log, text: string): void
  /** A function fetches: answer with {@link HostProcess.settleFetch}. */
  fetchStarted(host: HostProcess, fetch: Fetch, head: string, body: Uint8Array): void
  fetchStopped(host: HostProcess, fetch: number): void
  /** A function used something while nobody waited for it. */
  usedInBackground(host: HostProcess, background: Background): void
  /** Where the CPU time of the process went so far. */
  usedCpu(host: HostProcess, cpu: HostCpu): void
  /** The process wrote to its own standard error: never user output. */
  complained(host: HostProcess, line: string): void
  /** It has work and has said nothing for long. */
  stuck(host: HostProcess): void
  /** A slot was given back, or there are more of them. */
  hasRoom(host: HostProcess): void
  /** The process is gone and every call in it has been answered. Called once. */
  gone(host: HostProcess, how: string): void
}

/** What a host needs to know of a revision. */
export type HostRevision = Pick<Revision, 'id' | 'functionName' | 'handlerExport' | 'limits' | 'env'> & {
  /** Its isolate stays while others leave. */
  readonly keepWarm?: boolean
}

/** How long a host gets to compile or to bring up a revision besides its wall limit, in ms. */
const PREPARE_MS = 30_000
/** A host that is this late with an answer, after the wall limit that it keeps itself, answers nothing any more, in ms. */
const OVERDUE_GRACE_MS = 3_000
const OVERDUE_CHECK_MS = 500
/** A host that has work and says nothing for so long is stuck, in ms, */
const STUCK_MS = 5_000
/** and after so much more it is ended, with the calls in it. */
const STUCK_GRACE_MS = 5_000
/** Evidence that entries wait too long holds for so long, in ms. */
const DELAYED_MS = 1_000
/** How long it gets to end by itself, in ms. */
const STOP_MS = 1_000

/** One host process: its life, its socket, and what is under way in it. */
export class HostProcess {
  readonly id: number
  readonly startedAt = new Date()
  readonly #child: ChildProcess
  readonly #connection: Connection<ToServer, ToHost>
  readonly #listener: HostProcessListener
  readonly #given = new Set<string>()
  /** Revisions that invocations of were sent. */
  readonly #ran = new Set<string>()
  readonly slots: HostSlots
  readonly signals: HostSignals
  readonly #pending: PendingReplies
  readonly #heads = new ResponseHeadReader()
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
    this.#pending = new PendingReplies(this.#bornAtMs + startTimeoutMs)
    const { initial, targetMs } = limit
    this.slots = new HostSlots({ limit: initial, targetMs }, () => listener.hasRoom(this))
    this.signals = new HostSignals({ targetMs: limit.targetMs, keptMs: historyMs, nowMs: this.#bornAtMs })
    this.#child = spawnHost(program)
    this.#connection = new Connection<ToServer, ToHost>(this.#child.stdio[3] as Duplex, {
      onFrame: (frame) => this.#receive(frame),
      onClose: (reason) => this.#lose(reason),
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
    this.#connection.send(program.setup, program.runtime)
  }

  /** Resolves when the host takes invocations; rejects if it is gone before. */
  get ready(): Promise<void> {
    return this.#pending.untilReady
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
    if (this.#pending.lost) return 'gone'
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
    return this.#role === 'serving' && !this.#pending.lost
  }

  /** Whether its end was asked for. */
  get isToEnd(): boolean {
    return this.#role === 'draining' || this.#role === 'poisoned'
  }

  get isStandby(): boolean {
    return this.#role === 'standby' && !this.#pending.lost
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
    return this.#pending.invocations
  }

  get isReady(): boolean {
    return this.#readyAtMs !== undefined
  }

  get takesInvocations(): boolean {
    return this.serves && this.#readyAtMs !== undefined
  }

  has(revision: string): boolean {
    return this.#given.has(revision)
  }

  /** Gives a revision's code to the host, unless it has it. */
  give(revision: HostRevision, { source, codeCache }: RevisionCode): void {
    if (this.#given.has(revision.id)) return
    this.#given.add(revision.id)
    const { id, functionName, handlerExport, limits, env, keepWarm = false } = revision
    const load = {
      type: 'load',
      revision: id,
      functionName,
      limits,
      env,
      keepWarm,
      ...(handlerExport !== undefined && { handlerExport }),
    } as const
    this.#connection.send(load, source, codeCache)
  }

  /** Has V8 compile a given revision, running none of it. Undefined if it does not compile. */
  compile(revision: string): Promise<Uint8Array | undefined> {
    this.#connection.send({ type: 'compile', revision })
    return this.#pending.expectCompiled(revision, performance.now() + PREPARE_MS)
  }

  /** Brings a given revision up in an isolate. */
  start({ id: revision, limits }: HostRevision): Promise<StartResult> {
    this.#connection.send({ type: 'start', revision })
    return this.#pending.expectStarted(revision, performance.now() + limits.wallMs + PREPARE_MS)
  }

  /** Has the host forget a revision once what it runs of it has ended. */
  retire(revision: string): void {
    if (this.#given.delete(revision)) this.#connection.send({ type: 'retire', revision })
  }

  /**
   * Runs an invocation of a given revision. Never rejects: if the host dies, the outcome is `host-lost`.
   * @param slot given back when the invocation waits or ends, whichever comes first
   */
  invoke(
    { id, revision: { id: revision, limits }, slot }: { id: string; revision: HostRevision; slot: SlotLease },
    { body, ...head }: HttpRequest,
    cancellation: Cancellation,
  ): Promise<InvocationResult> {
    const [invocation, result] = this.#pending.expectAnswer(performance.now() + limits.wallMs + OVERDUE_GRACE_MS, slot)
    this.#connection.send({ type: 'invoke', invocation, id, revision }, JSON.stringify({ invocationId: id, ...head }), body)
    cancellation.onCancel(() => this.#connection.send({ type: 'cancel', invocation }))
    if (this.#ran.has(revision)) return result
    this.#ran.add(revision)
    return result.then((first) => (first.start === 'isolate-cold' ? { ...first, start: 'host-cold' } : first))
  }

  settleFetch(fetch: number, result: string, body: Uint8Array): void {
    this.#connection.send({ type: 'fetch-settled', fetch }, result, body)
  }

  /** Takes no more invocations from here on; ends when its socket is closed. */
  stop(): void {
    this.#role = 'draining'
    this.#connection.close()
    this.#stopLimit ??= setTimeout(() => this.kill(), STOP_MS)
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  #receive({ message, text, body }: Frame<ToServer>): void {
    switch (message.type) {
      case 'answer': {
        const head = this.#heads.read(text)
        const { invocation } = message
        const start = startOf(message.start)
        const usage = unpackUsage(message.usage)
        if (typeof head === 'string')
          return this.#pending.answer(invocation, { outcome: 'invalid-response', start, usage, detail: head, stack: head })
        return this.#pending.answer(invocation, {
          outcome: 'ok',
          start,
          usage,
          response: { status: head.status, headers: head.headers, body },
        })
      }
      case 'failed': {
        const { invocation, outcome, detail, stack } = message
        const start = startOf(message.start)
        const usage = unpackUsage(message.usage)
        return this.#pending.answer(invocation, { outcome, start, usage, detail, ...(stack !== undefined && { stack }) })
      }
      case 'background':
        return this.#listener.usedInBackground(this, message)
      case 'pulse':
        for (const [invocation, usage] of message.underWay) this.#pending.used(invocation, unpackUsage(usage))
        return this.#listener.usedCpu(this, message.cpu)
      case 'waiting':
        for (const invocation of message.invocations) this.#pending.waits(invocation)
        return
      case 'signals':
        return this.#told(message)
      case 'log':
        return this.#listener.logged(message, text)
      case 'fetch':
        return this.#listener.fetchStarted(this, message, text, body)
      case 'fetch-stop':
        return this.#listener.fetchStopped(this, message.fetch)
      case 'compiled':
        return this.#pending.compiled(message.revision, body.length === 0 ? undefined : body.slice())
      case 'started':
        return this.#pending.started(message.revision, message.result)
      case 'ready':
        this.#readyAtMs = performance.now()
        this.#pending.ready()
        return this.#listener.hasRoom(this)
    }
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
    this.#isLate = this.#pending.isOverdue(nowMs)
    if (wasLate && this.#isLate) this.#lose(new Error('it did not answer in time'))
    const wasStuck = this.#isStuck
    this.#isStuck = this.inFlight > 0 && this.signals.silentMs(nowMs) > STUCK_MS
    if (!wasStuck || !this.#isStuck) return
    if (this.serves) this.#listener.stuck(this)
    else if (this.signals.silentMs(nowMs) > STUCK_MS + STUCK_GRACE_MS) this.#lose(new Error('it did not answer any more'))
  }

  /** Whichever is noticed first, the socket's end or the process's: answers all that waits, once. */
  #lose(reason: Error | undefined): void {
    if (this.#pending.lost) return
    clearInterval(this.#overdueCheck)
    // A host whose socket is gone or garbled is of no use any more.
    this.kill()
    this.#pending.lose()
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

/** What a host says may be anything. */
function startOf(start: HostStart): HostStart {
  return start === 'warm' ? 'warm' : 'isolate-cold'
}

function spawnHost({ nodePath, nodeArguments }: HostProgram): ChildProcess {
  let child: ChildProcess | undefined
  try {
    child = spawn(nodePath, nodeArguments, { stdio: ['ignore', 'ignore', 'pipe', 'pipe'], env: {} })
    if (child.stdio?.[3] !== undefined && child.stdio[3] !== null) return child
  } catch (cause) {
    throw new CarpoolError('no-host', 'A host process could not be started.', { cause })
  }
  // Without descriptors left, Node.js gives a child without streams, and tells why in an event of its own.
  child.once('error', () => {})
  throw new CarpoolError('no-host', 'A host process could not be started.')
}
