import { climb, LIMIT_RANGES, type LogLevel } from '@carpool/core'
import { Bootstrap, compileToCache } from './isolates/guest-isolate.ts'
import { IsolatePool } from './isolates/isolate-pool.ts'
import { Prewarmer } from './isolates/prewarmer.ts'
import type { Account } from './accounting/account.ts'
import { NO_INVOCATION, type BodyKind, type GuestFailure } from '@carpool/runtime/bridge'
import { NO_BODY, type Setup, type ToHost } from '@carpool/wire'
import { decodeBody, encodeBody } from './calls/body-codec.ts'
import { CodeStore } from './isolates/code-store.ts'
import { EnteredWatch } from './scheduler/entered-watch.ts'
import { EntryGate } from './scheduler/entry-gate.ts'
import { Fetches } from './calls/fetches.ts'
import { Guest, type GuestListener } from './isolates/guest.ts'
import { Invocations } from './calls/invocations.ts'
import { asLoadFailure, LoadFailure } from './isolates/load-failure.ts'
import { LogThrottle } from './calls/log-throttle.ts'
import { LongEntries, LONG_ENTRY_MS } from './scheduler/long-entries.ts'
import { MemoryRelief } from './isolates/memory-relief.ts'
import { Remains } from './isolates/remains.ts'
import type { Send } from './send.ts'
import { Signals, SIGNALS_MS } from './accounting/signals.ts'
import { SlotReturns } from './calls/slot-returns.ts'
import type { Stay } from './scheduler/stay.ts'
import { BACKGROUND_ENDED, StayEnder } from './scheduler/stay-ender.ts'
import { Turns } from './scheduler/turns.ts'
import { UsageReport } from './accounting/usage-report.ts'

export interface HostOptions {
  readonly setup: Setup
  /** The guest runtime's script. */
  readonly runtime: string
  readonly send: Send
  /** What was sent and has not left the process yet, in bytes. */
  readonly backlogBytes: () => number
  /** Something for the operator's log. */
  readonly onProblem: (text: string) => void
  /** The process cannot go on: V8 gave up on an isolate while it was made. */
  readonly onCatastrophe: (reason: string) => void
}

/** A stay that uses no CPU gives its place up after so many slices of time: it waits for something, or its thread is parked. */
const IDLE_SLICES = 10
/** How long a retired isolate may go on with work that nobody waits for, in ms. */
const LINGER_MS = 30_000
/** How often the server is told what was used, in ms. */
const REPORT_MS = 250
/** The next isolate of a revision may be retired after so long, in ms, */
const RETIRE_AGAIN_MS = 10_000
/** or after so many invocations. */
const RETIRE_AGAIN_INVOCATIONS = 20
/** How often the memory is looked at, and isolates that are to stay but were lost are made anew, in ms. */
const UPKEEP_MS = 1_000

/** Runs invocations in isolates, as the server's messages say. */
export class Host implements GuestListener {
  readonly #send: Send
  readonly #maxBodyBytes: number
  readonly #onCatastrophe: (reason: string) => void
  readonly #prewarmer: Prewarmer<Guest>
  readonly #pool: IsolatePool<Guest>
  readonly #codes: CodeStore
  /** Revisions that are to stay and did not load again. */
  readonly #hasFailed = new Set<string>()
  readonly #fetches: Fetches
  readonly #invocations: Invocations
  readonly #usage: UsageReport
  readonly #stayEnder: StayEnder
  readonly #watch: EnteredWatch
  readonly #signals: Signals
  readonly #slotReturns: SlotReturns
  readonly #longEntries: LongEntries
  readonly #turns: Turns
  /** By revision: a new isolate has no new budget. */
  readonly #logs = new Map<string, LogThrottle>()
  readonly #remains = new Remains()
  /** When an isolate of a revision was last retired for what it held or used, in ms. */
  readonly #retiredAtMs = new Map<string, number>()

  constructor({ setup, runtime, send, backlogBytes, onProblem, onCatastrophe }: HostOptions) {
    this.#send = send
    this.#maxBodyBytes = setup.maxBodyBytes
    this.#codes = new CodeStore({ maxBodyBytes: setup.maxBodyBytes, clock: setup.guestClock, webAssembly: setup.webAssembly })
    this.#onCatastrophe = onCatastrophe
    const bootstrap = new Bootstrap(runtime)
    const gate = new EntryGate(setup.enteredIsolates)
    this.#usage = new UsageReport({ send, underWay: () => this.#invocations.underWay })
    const makeBlank = async (memoryLimitMb: number): Promise<Guest> => {
      const guest = await Guest.blank(bootstrap, memoryLimitMb, { listener: this, gate })
      this.#usage.made(guest)
      return guest
    }
    this.#prewarmer = new Prewarmer(makeBlank, setup.prewarm)
    this.#pool = new IsolatePool({
      load: (revision) => this.#load(revision),
      maxIsolates: setup.maxIsolates,
      lingerMs: LINGER_MS,
    })
    this.#fetches = new Fetches({ send, backlogBytes, maxBodyBytes: setup.maxBodyBytes })
    this.#invocations = new Invocations({
      send,
      codes: this.#codes,
      pool: this.#pool,
      fetches: this.#fetches,
      endStuck: (guest) => this.#stayEnder.end(guest, 'wall'),
    })
    this.#stayEnder = new StayEnder({
      invocations: this.#invocations,
      remains: this.#remains,
      updateStays: () => this.#watch.update(),
      onLost: (stay) => {
        this.#turns.end(stay)
        this.#usage.lost(stay)
        this.#fetches.stopOrphans()
      },
      onRetiring: (guest) => this.#retire(guest),
      onPoisoned: ({ revision }, why) => send({ type: 'poisoned', revision, why }),
    })
    this.#watch = new EnteredWatch((guest, stay) => {
      const ranMs = performance.now() - stay.beganAtMs
      // In CPU: on a busy machine the shortest entry lasts that long.
      const usedMs = stay.totalNs / 1e6
      if (usedMs >= LONG_ENTRY_MS) this.#longEntries.runs(stay, guest.revision)
      if (usedMs >= setup.entrySliceMs) this.#turns.take(stay, guest)
      if (usedMs >= setup.entrySliceMs || ranMs >= IDLE_SLICES * setup.entrySliceMs) guest.queue.stepAside()
      this.#stayEnder.look(guest, stay)
    })
    this.#slotReturns = new SlotReturns(send)
    this.#longEntries = new LongEntries(send)
    this.#turns = new Turns(setup.longEntries)
    this.#signals = new Signals({
      send,
      gate,
      guests: () => this.#usage.loaded(),
      resumedIn: ({ queue }) => this.#slotReturns.count(queue.resumed),
      entered: () => this.#watch.count,
      hasInvocations: () => this.#invocations.count > 0,
    })
    setInterval(() => this.#signals.read(), SIGNALS_MS).unref()
    const relief = new MemoryRelief(this.#pool, setup.memoryBudgetBytes, onProblem)
    setInterval(() => {
      relief.look()
      this.#warmAgain()
    }, UPKEEP_MS).unref()
    setInterval(() => {
      // What is under way is told with the rest, once it is known that it is within its limits.
      this.#watch.look()
      for (const guest of this.#watch.entered) if (guest.stay?.isEnded === false) guest.queue.charge()
      for (const guest of this.#usage.tell()) {
        this.#stayEnder.endBackground(guest)
        // Nobody is told by an answer.
        this.#send({ type: 'log', revision: guest.revision, level: 'error' }, BACKGROUND_ENDED)
      }
      this.#fetches.stopOrphans()
      this.#fetches.stopForgotten(performance.now())
    }, REPORT_MS).unref()
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
      case 'compile':
        return void this.#compile(message.revision)
      case 'start':
        return void this.#start(message.revision)
      case 'retire':
        this.#pool.retire(message.revision)
        this.#hasFailed.delete(message.revision)
        this.#retiredAtMs.delete(message.revision)
        this.#logs.delete(message.revision)
        return this.#codes.delete(message.revision)
      case 'invoke': {
        const [kind, requestBody] = encodeBody(body)
        return this.#invocations.begin(message, { head: text, kind, body: requestBody })
      }
      case 'cancel':
        return this.#invocations.cancel(message.invocation)
      case 'fetch-settled':
        return this.#fetches.settle(message.fetch, text, body, message)
    }
  }

  answered(guest: Guest, number: number, head: string, kind: BodyKind, body: string): void {
    const invocation = this.#invocations.of(guest, number)
    if (invocation === undefined) return
    const bytes = decodeBody(kind, body)
    if (bytes.length <= this.#maxBodyBytes) return this.#invocations.answer(invocation, head, bytes)
    const detail = `The response body has ${bytes.length} bytes; the limit is ${this.#maxBodyBytes}.`
    this.#invocations.fail(invocation, 'invalid-response', detail, detail)
  }

  failed(guest: Guest, number: number, text: string): void {
    const invocation = this.#invocations.of(guest, number)
    if (invocation === undefined) return
    const failure = JSON.parse(text) as GuestFailure
    const detail = failure.outcome === 'exception' ? 'The function threw an error; its log has the stack.' : failure.message
    this.#invocations.fail(invocation, failure.outcome, detail, failure.stack || failure.message)
  }

  fetchStarted(guest: Guest, number: number, guestFetch: number, head: string, kind: BodyKind, body: string): void {
    const id = this.#hadEffect(guest, number)
    this.#fetches.start(guest, { invocation: number, id, guestFetch }, head, kind, body)
  }

  fetchStopped(guest: Guest, guestFetch: number): void {
    this.#fetches.stop(guest, guestFetch)
  }

  canceled(guest: Guest, number: number): void {
    // Those that it started while the cancel was on its way to it.
    if (number !== NO_INVOCATION) this.#fetches.stopOf(guest, number)
  }

  logged(guest: Guest, number: number, level: LogLevel, text: string): void {
    const id = this.#hadEffect(guest, number)
    this.#send({ type: 'log', revision: guest.revision, level, ...(id !== undefined && { id }) }, text)
  }

  logsOf({ revision }: Guest): LogThrottle {
    let logs = this.#logs.get(revision)
    if (logs === undefined) {
      logs = new LogThrottle((report) => this.#send({ type: 'log', revision, level: 'warn' }, report))
      this.#logs.set(revision, logs)
    }
    return logs
  }

  accountOf(guest: Guest, number: number): Account | undefined {
    return this.#invocations.of(guest, number)?.account
  }

  stayBegan(guest: Guest, stay: Stay): void {
    this.#watch.began(guest, stay)
  }

  stayEnded(guest: Guest, stay: Stay): void {
    this.#watch.ended(guest)
    this.#longEntries.ended(stay, guest.revision)
    this.#turns.end(stay)
    this.#invocations.endOverLimit(guest, stay)
  }

  stayLost(guest: Guest, stay: Stay): void {
    this.#stayEnder.lost(guest, stay)
    this.#remains.left(stay)
    this.#watch.ended(guest)
    this.#longEntries.ended(stay, guest.revision)
    this.#turns.end(stay)
  }

  entryDelayed(delayMs: number): void {
    this.#signals.runDelay.add(delayMs * 1000)
  }

  stayDelayed(delayMs: number): void {
    this.#signals.sharedDelay.add(delayMs * 1000)
  }

  entryRan(invocation: number): void {
    const underWay = this.#invocations.get(invocation)
    if (underWay !== undefined) this.#slotReturns.add(underWay)
  }

  lostAtRest(guest: Guest): void {
    this.#stayEnder.lostAtRest(guest)
  }

  gaveUp(guest: Guest): void {
    this.#stayEnder.gaveUp(guest)
  }

  catastrophe(reason: string): void {
    this.#onCatastrophe(reason)
  }

  memorySeen(guest: Guest): void {
    const { lastHeapBytes, limits } = guest
    const { rung } = climb('running', { of: 'memory', heapBytes: lastHeapBytes, limitBytes: limits.memoryMb * 1024 * 1024 })
    if (rung === 'retiring') this.#retire(guest)
  }

  /** The invocation showed itself outside, so it cannot be begun again in secret. @returns its public id, if the guest runs it */
  #hadEffect(guest: Guest, number: number): string | undefined {
    const invocation = this.#invocations.of(guest, number)
    if (invocation === undefined) return undefined
    invocation.call = undefined
    return invocation.id
  }

  async #load(revision: string): Promise<Guest> {
    if (!(await this.#remains.mayBegin(revision))) {
      throw new LoadFailure('The function does not run in this host process any more.', { outcome: 'isolate-lost' })
    }
    const { code, options } = this.#codes.get(revision)
    const guest = await this.#prewarmer.take(options.limits.memoryMb)
    try {
      await guest.load(code, options)
      // What it has left behind in timers and fetches is nobody's from now on.
      guest.start.close(guest.background)
      return guest
    } catch (cause) {
      const failure = asLoadFailure(cause)
      failure.charge(guest.start.take().cpuNs)
      guest.start.close(guest.background)
      throw failure
    }
  }

  /** The guest is near a limit: who comes from now on gets another isolate. What is in it goes on. */
  #retire(guest: Guest): void {
    const nowMs = performance.now()
    // One that holds that much from its first calls on would get a new isolate for each look at its memory.
    const sinceLastMs = nowMs - (this.#retiredAtMs.get(guest.revision) ?? Number.NEGATIVE_INFINITY)
    if (sinceLastMs < RETIRE_AGAIN_MS && guest.invocations < RETIRE_AGAIN_INVOCATIONS) return
    if (this.#pool.setAside(guest.revision, guest)) this.#retiredAtMs.set(guest.revision, nowMs)
  }

  /** What is to stay was ended at a limit; what does not load is left to its next call. */
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

  async #compile(revision: string): Promise<void> {
    const stored = this.#codes.find(revision)
    const cache = stored && (await compileToCache(stored.code, stored.options.limits.memoryMb))
    this.#send({ type: 'compiled', revision }, '', cache ?? NO_BODY)
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
