import { hostMemory, LIMIT_RANGES } from '@carpool/core'
import { NO_BODY, type BodyTurns, type Setup, type ToHost } from '@carpool/wire'
import { addon } from './addon.ts'
import { LoadReporter, LOAD_REPORT_MS } from './accounting/load-reporter.ts'
import { UsageReport } from './accounting/usage-report.ts'
import { Fetches } from './calls/fetches.ts'
import { Invocations } from './calls/invocations.ts'
import { Presence } from './calls/presence.ts'
import { Sockets } from './calls/sockets.ts'
import { Streams } from './calls/streams.ts'
import { asLoadFailure, CodeStore, LoadFailure, type StoredCode } from './isolates/code-store.ts'
import { Guest } from './isolates/guest.ts'
import { encodeBody } from './isolates/guest-bridge.ts'
import { Bootstrap } from './isolates/guest-isolate.ts'
import { IsolatePool } from './isolates/isolate-pool.ts'
import { Prewarmer } from './isolates/prewarmer.ts'
import { LogThrottles } from './limits/log-throttle.ts'
import { MemoryRelief } from './limits/memory.ts'
import { BACKGROUND_ENDED, DisposingIsolates, Watchdog } from './limits/watchdog.ts'
import { RunScheduler } from './scheduler/run-scheduler.ts'
import type { Send } from './send.ts'

export interface HostOptions {
  readonly setup: Setup
  /** The guest runtime's script. */
  readonly runtime: string
  readonly send: Send
  /** Sends large bodies by turns. */
  readonly bodies: BodyTurns
  /** What was sent and has not left the process yet, in bytes. */
  readonly backlogBytes: () => number
  /** Something for the operator's log. */
  readonly onProblem: (text: string) => void
  /** The process cannot go on: V8 gave up on an isolate while it was made. */
  readonly onCatastrophe: (reason: string) => void
}

/** How long a retired isolate may go on with background work, in ms. */
const LINGER_MS = 30_000
/** How often usage is reported to the server, in ms. */
const REPORT_MS = 250
/** How often the memory is checked, and pinned isolates that were lost are made anew, in ms. */
const UPKEEP_MS = 1_000

/** Runs invocations in isolates, by the server's messages. Wires the parts of a host process, and brings revisions up. */
export class Host {
  readonly #send: Send
  readonly #codes: CodeStore
  readonly #scheduler: RunScheduler<Guest>
  readonly #prewarmer: Prewarmer<Guest>
  readonly #pool: IsolatePool<Guest>
  readonly #disposing = new DisposingIsolates()
  /** Pinned revisions that did not load again. */
  readonly #hasFailed = new Set<string>()
  readonly #fetches: Fetches
  readonly #sockets: Sockets
  readonly #streams: Streams
  readonly #invocations: Invocations
  readonly #usage: UsageReport
  readonly #watchdog: Watchdog
  readonly #logs: LogThrottles
  readonly #presence: Presence

  constructor({ setup, runtime, send, bodies, backlogBytes, onProblem, onCatastrophe }: HostOptions) {
    const { maxBodyBytes } = setup
    this.#send = send
    this.#presence = new Presence(send)
    this.#codes = new CodeStore({ maxBodyBytes, clock: setup.guestClock, webAssembly: setup.webAssembly })
    this.#logs = new LogThrottles((revision, report, rejections) =>
      send({ type: 'log', revision, level: 'warn', ...(rejections > 0 && { rejections }) }, report),
    )
    this.#pool = new IsolatePool({
      load: (revision) => this.#load(revision),
      maxIsolates: setup.maxIsolates,
      lingerMs: LINGER_MS,
    })
    this.#streams = new Streams({ send, bodies })
    this.#fetches = new Fetches({ send, bodies, backlogBytes, maxBodyBytes, streams: this.#streams })
    this.#sockets = new Sockets({ send, streams: this.#streams })
    this.#invocations = new Invocations({
      send,
      bodies,
      codes: this.#codes,
      pool: this.#pool,
      fetches: this.#fetches,
      sockets: this.#sockets,
      streams: this.#streams,
      maxBodyBytes,
      endStuck: (guest) => this.#watchdog.end(guest, 'wall'),
    })
    this.#usage = new UsageReport({ send, underWay: () => this.#invocations.active })
    this.#scheduler = new RunScheduler({
      permits: setup.enteredIsolates,
      longBatches: setup.longEntries,
      firstSliceMs: setup.entrySliceMs,
      onLong: ({ revision }, change) => send({ type: 'long-entry', revision, change }),
      onCheck: (guest, batch) => this.#watchdog.check(guest, batch),
    })
    this.#watchdog = new Watchdog({
      invocations: this.#invocations,
      disposing: this.#disposing,
      scheduler: this.#scheduler,
      pool: this.#pool,
      onDisposed: (batch) => {
        this.#usage.disposed(batch)
        this.#stopOrphans()
      },
      onPoisoned: ({ revision }, why) => send({ type: 'poisoned', revision, why }),
    })
    const bootstrap = new Bootstrap(runtime)
    const parts = {
      calls: this.#invocations,
      watchdog: this.#watchdog,
      scheduler: this.#scheduler,
      logs: this.#logs,
      onGrown: (revision: string, heldBytes: number) => send({ type: 'grown', revision, heldBytes }),
      onCatastrophe,
    }
    const makeBlank = async (memoryLimitMb: number, isForLater: boolean): Promise<Guest> => {
      const guest = await Guest.blank({ bootstrap, memoryLimitMb, isTrimmed: isForLater }, parts)
      this.#usage.add(guest)
      return guest
    }
    this.#prewarmer = new Prewarmer(
      makeBlank,
      setup.prewarm,
      // One core is left to what runs.
      Math.max(1, setup.longEntries - 1),
      () => this.#scheduler.enteredCount > 0 || this.#scheduler.waiting > 0,
    )
    const loadReporter = new LoadReporter({
      send,
      scheduler: this.#scheduler,
      guests: () => this.#usage.loaded(),
      hasInvocations: () => this.#invocations.count > 0,
    })
    addon.setMemoryStock(hostMemory(setup.memoryBudgetBytes).stockBytes)
    const relief = new MemoryRelief(this.#pool, setup.memoryBudgetBytes, onProblem)
    // Periodic at rest. What is needed only at times has its timer only then: checks of batches, wall limits, waiting fetches,
    // log reports.
    setInterval(() => {
      this.#presence.look()
      loadReporter.report()
    }, LOAD_REPORT_MS).unref()
    setInterval(() => this.#reportUsage(), REPORT_MS).unref()
    setInterval(() => {
      relief.check()
      this.#warmAgain()
    }, UPKEEP_MS).unref()
  }

  /** Gets the first blank isolates ready. */
  async prepare(): Promise<void> {
    this.#prewarmer.open(LIMIT_RANGES.memoryMb.default)
    await this.#prewarmer.fill()
  }

  receive(message: Exclude<ToHost, Setup>, text: string, body: Uint8Array): void {
    switch (message.type) {
      case 'load':
        this.#codes.put(message, text, body)
        if (message.keepWarm) this.#pool.pin(message.revision)
        return
      case 'make-code-cache':
        return void this.#makeCodeCache(message.revision, message.rehearsed)
      case 'use-code-cache':
        return this.#codes.setCodeCache(message.revision, body)
      case 'start':
        return void this.#start(message.revision)
      case 'retire':
        this.#pool.retire(message.revision)
        this.#hasFailed.delete(message.revision)
        this.#watchdog.forget(message.revision)
        this.#logs.delete(message.revision)
        return this.#codes.delete(message.revision)
      case 'invoke': {
        if (!this.#presence.look()) return this.#send({ type: 'unbegun', invocation: message.invocation })
        const [kind, requestBody] = encodeBody(body)
        return this.#invocations.begin(message, {
          head: text,
          kind: message.streams === true ? 'stream' : kind,
          body: requestBody,
        })
      }
      case 'cancel':
        return this.#invocations.cancel(message.invocation)
      case 'resume':
        return this.#presence.resume(message.absence)
      case 'fetch-settled':
        return this.#fetches.settle(message.fetch, text, body, message)
      case 'fetch-head':
        return this.#fetches.headCame(message.fetch, text)
      case 'socket-connected':
        return this.#sockets.connected(message.socket, text)
      case 'socket-closed':
        return this.#sockets.closed(message.socket, text)
      case 'stream-data':
      case 'stream-credit':
      case 'stream-abort':
      case 'stream-moved':
        return this.#streams.receive(message, text, body)
    }
  }

  #reportUsage(): void {
    // Batches that run are charged once it is known that they are within their limits.
    this.#scheduler.check()
    for (const guest of this.#scheduler.entered) if (guest.batch?.isEnded === false) guest.queue.charge()
    for (const guest of this.#usage.send()) {
      this.#watchdog.endBackground(guest)
      // There is no answer that would say so.
      this.#send({ type: 'log', revision: guest.revision, level: 'error' }, BACKGROUND_ENDED)
    }
    this.#stopOrphans()
    this.#fetches.stopOverdueBackground(performance.now())
  }

  /** What guests had open that are gone. */
  #stopOrphans(): void {
    this.#fetches.stopOrphans()
    this.#sockets.stopOrphans()
  }

  async #load(revision: string): Promise<Guest> {
    if (!(await this.#disposing.mayLoad(revision))) {
      throw new LoadFailure('The function does not run in this host process any more.', { outcome: 'isolate-lost' })
    }
    const stored = this.#codes.get(revision)
    const { limits, functionName } = stored.options
    const holder = { owner: stored.owner, functionName }
    return this.#prewarmer.use(limits.memoryMb, holder, (guest) => this.#loadInto(guest, stored))
  }

  async #loadInto(guest: Guest, { code, options, owner, cost }: StoredCode): Promise<Guest> {
    guest.queue.cost = cost
    try {
      await guest.load(code, options, owner)
      // The timers and fetches that it has left are background work from now on.
      guest.start.close(guest.background)
      if (!guest.isCached) this.#send({ type: 'uncached', revision: options.revision })
      return guest
    } catch (cause) {
      const failure = asLoadFailure(cause)
      failure.charge(guest.start.take().cpuNs)
      guest.start.close(guest.background)
      throw failure
    }
  }

  /** Loads pinned revisions whose isolates were ended at a limit. One that does not load is left to its next call. */
  #warmAgain(): void {
    for (const revision of this.#pool.coldPinned) {
      if (this.#hasFailed.has(revision) || this.#codes.find(revision) === undefined) continue
      this.#pool.acquire(revision).then(
        (lease) => {
          this.#invocations.chargeStart(revision, lease.isolate.start.take().cpuNs)
          lease.release()
        },
        (cause: unknown) => {
          this.#hasFailed.add(revision)
          this.#invocations.chargeStart(revision, asLoadFailure(cause).takeCpuNs())
        },
      )
    }
  }

  async #makeCodeCache(revision: string, rehearsed: boolean): Promise<void> {
    const lease = this.#pool.acquireWarm(revision)
    const code = this.#codes.find(revision)?.code
    const rehearsal = rehearsed ? lease?.isolate.rehearse() : undefined
    const cache = code && (await lease?.isolate.makeCodeCache(code, rehearsal).catch(() => undefined))
    lease?.release()
    this.#send({ type: 'code-cache-made', revision }, '', cache ?? NO_BODY)
  }

  async #start(revision: string): Promise<void> {
    try {
      const lease = await this.#pool.acquire(revision)
      const { form, start } = lease.isolate
      this.#invocations.chargeStart(revision, start.take().cpuNs)
      lease.release()
      this.#send({ type: 'started', revision, result: { ok: true, form } })
    } catch (cause) {
      const failure = asLoadFailure(cause)
      this.#invocations.chargeStart(revision, failure.takeCpuNs())
      const { code, message, guestStack: stack } = failure
      this.#send({ type: 'started', revision, result: { ok: false, code, message, stack } })
    }
  }
}
