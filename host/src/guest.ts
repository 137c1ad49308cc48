import { randomBytes } from 'node:crypto'
import type { HandlerForm, LogLevel } from '@carpool/core'
import { GuestIsolate, type Bootstrap, type GuestCallback, type GuestCode, type Primitive } from '@carpool/isolate'
import type { Pooled } from '@carpool/isolate-pool'
import {
  ENTROPY_BYTES,
  type BodyKind,
  type GuestBridge,
  type GuestEntries,
  type GuestOptions,
  type LoadReport,
  NO_INVOCATION,
} from '@carpool/runtime/bridge'
import { LoadFailure } from './load-failure.ts'
import { LogThrottle } from './log-throttle.ts'
import { LoopWatch } from './loop-watch.ts'
import { TimerTable } from './timer-table.ts'

/** What a guest tells its host. Numbers and texts come from the guest: trust neither. */
export interface GuestListener {
  answered(guest: Guest, invocation: number, head: string, kind: BodyKind, body: string): void
  failed(guest: Guest, invocation: number, failure: string): void
  fetchStarted(guest: Guest, invocation: number, fetch: number, head: string, kind: BodyKind, body: string): void
  fetchStopped(guest: Guest, fetch: number): void
  /** The guest got round to a `cancel`: what the invocation waits for was told before. */
  canceled(guest: Guest, invocation: number): void
  logged(guest: Guest, invocation: number, level: LogLevel, text: string): void
  /** V8 gave up on the isolate: the process must end. */
  catastrophe(reason: string): void
}

const ENTRY_NAMES = ['load', 'invoke', 'cancel', 'fireTimer', 'settleFetch'] as const satisfies ReadonlyArray<keyof GuestEntries>

/** An isolate with the guest runtime in it: first blank, then, once loaded, one revision of a function. */
export class Guest implements Pooled {
  /** Monotonic time of the first entry that was queued since the guest last called the host, in ms; undefined if none was. */
  silentSinceMs: number | undefined
  /** Fetches that the guest waits for; the fetch table counts them. */
  openFetches = 0
  readonly #isolate: GuestIsolate
  readonly #timers: TimerTable
  readonly #logs: LogThrottle
  readonly #relay: Relay
  #revision = ''
  #form: HandlerForm = 'fetch'
  #wallMs = 0

  private constructor(isolate: GuestIsolate, relay: Relay, listener: GuestListener) {
    this.#isolate = isolate
    this.#relay = relay
    this.#timers = new TimerTable((timer) => this.#enter('fireTimer', timer))
    this.#logs = new LogThrottle((report) => listener.logged(this, NO_INVOCATION, 'warn', report))
  }

  /** Makes an isolate with the runtime booted in it. */
  static async blank(bootstrap: Bootstrap, memoryLimitMb: number, listener: GuestListener): Promise<Guest> {
    const relay: Relay = { guest: undefined, onLoaded: undefined }
    const isolate = await GuestIsolate.create({
      bootstrap,
      entryNames: ENTRY_NAMES,
      callbacks: bridgeOf(relay, listener),
      memoryLimitMb,
      onCatastrophe: (reason) => listener.catastrophe(reason),
    })
    const guest = new Guest(isolate, relay, listener)
    relay.guest = guest
    return guest
  }

  get revision(): string {
    return this.#revision
  }

  get form(): HandlerForm {
    return this.#form
  }

  get disposed(): boolean {
    return this.#isolate.disposed
  }

  /** Wall limit of the revision, in ms. */
  get wallMs(): number {
    return this.#wallMs
  }

  get hasBackgroundWork(): boolean {
    return this.#timers.size > 0 || this.openFetches > 0
  }

  get timers(): TimerTable {
    return this.#timers
  }

  /** What of the guest's log lines may pass. */
  get logs(): LogThrottle {
    return this.#logs
  }

  /**
   * Runs the module scope of a revision, within its wall limit.
   * @throws LoadFailure
   */
  async load(code: GuestCode, options: GuestOptions): Promise<void> {
    this.#revision = options.revision
    this.#wallMs = options.limits.wallMs
    const report = await this.#untilLoaded(code, options)
    if (!report.ok) throw new LoadFailure(report.message, { code: report.code, guestStack: report.stack })
    this.#form = report.form
  }

  invoke(invocation: number, head: string, kind: BodyKind, body: string): void {
    this.#enter('invoke', invocation, head, kind, body)
  }

  cancel(invocation: number): void {
    this.#enter('cancel', invocation)
  }

  /** Has the guest call the host, with nothing to say, when it gets round to it. */
  ping(): void {
    this.cancel(NO_INVOCATION)
  }

  settleFetch(fetch: number, result: string, kind: BodyKind, body: string): void {
    this.#enter('settleFetch', fetch, result, kind, body)
  }

  dispose(): void {
    this.#timers.clear()
    this.#logs.close()
    this.#isolate.dispose()
  }

  #enter(entry: (typeof ENTRY_NAMES)[number], ...args: Primitive[]): void {
    this.silentSinceMs ??= performance.now()
    this.#isolate.enter(entry, ...args)
  }

  #untilLoaded(code: GuestCode, options: GuestOptions): Promise<LoadReport> {
    return new Promise((resolve, reject) => {
      const { wallMs } = options.limits
      const fail = (failure: LoadFailure): void => {
        settle()
        this.dispose()
        reject(failure)
      }
      const limit = setTimeout(
        () => fail(new LoadFailure(`The module scope did not finish within ${wallMs} ms.`, { outcome: 'timeout' })),
        wallMs,
      )
      // An isolate that V8 disposed tells nobody.
      const watch = setInterval(() => {
        if (!this.disposed) return
        fail(
          new LoadFailure(`The module scope passed the memory limit of ${options.limits.memoryMb} MiB.`, {
            outcome: 'memory-exceeded',
          }),
        )
      }, DISPOSED_CHECK_MS)
      const settle = (): void => {
        clearTimeout(limit)
        clearInterval(watch)
        this.#relay.onLoaded = undefined
      }
      this.#relay.onLoaded = (report) => {
        settle()
        if (!report.ok) this.dispose()
        resolve(report)
      }
      this.#isolate.enterCode('load', JSON.stringify(options), code).catch((cause: unknown) => {
        // A memory failure while compiling also ends here; the watch has the better reason for it.
        if (this.disposed) return
        fail(new LoadFailure(cause instanceof Error ? cause.message : 'The code does not compile.'))
      })
    })
  }
}

const DISPOSED_CHECK_MS = 10

/** Ties the callbacks, which an isolate needs before it exists, to the guest around it. */
interface Relay {
  guest: Guest | undefined
  onLoaded: ((report: LoadReport) => void) | undefined
}

const loopWatch = new LoopWatch()

function bridgeOf(relay: Relay, listener: GuestListener): Record<keyof GuestBridge, GuestCallback> {
  const relayed = (call: (guest: Guest, ...args: never[]) => void): GuestCallback => ({
    blocking: false,
    call: (...args) => {
      const { guest } = relay
      if (guest !== undefined) call(guest, ...args)
      return undefined
    },
  })
  // Only these end the silence of a guest: all else can come from a loop that never gets round to the next entry.
  const signOfLife = (call: (guest: Guest, ...args: never[]) => void): GuestCallback =>
    relayed((guest, ...args) => {
      guest.silentSinceMs = undefined
      call(guest, ...args)
    })
  return {
    loaded: signOfLife((_guest, report: string) => relay.onLoaded?.(JSON.parse(report) as LoadReport)),
    answer: signOfLife((guest, invocation: number, head: string, kind: BodyKind, body: string) =>
      listener.answered(guest, invocation, head, kind, body),
    ),
    fail: signOfLife((guest, invocation: number, failure: string) => listener.failed(guest, invocation, failure)),
    canceled: signOfLife((guest, invocation: number) => listener.canceled(guest, invocation)),
    startTimer: relayed((guest, timer: number, delayMs: number) => guest.timers.start(timer, delayMs)),
    stopTimer: relayed((guest, timer: number) => guest.timers.stop(timer)),
    startFetch: relayed((guest, invocation: number, fetch: number, head: string, kind: BodyKind, body: string) => {
      listener.fetchStarted(guest, invocation, fetch, head, kind, body)
    }),
    stopFetch: relayed((guest, fetch: number) => listener.fetchStopped(guest, fetch)),
    log: relayed((guest, invocation: number, level: LogLevel, text: string) => {
      if (guest.logs.take(text)) listener.logged(guest, invocation, level, text)
    }),
    entropy: { blocking: true, call: () => randomBytes(ENTROPY_BYTES).toString('latin1') },
    drain: { blocking: true, call: () => loopWatch.heldMs() },
  }
}
