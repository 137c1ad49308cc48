import { randomBytes } from 'node:crypto'
import type { HandlerForm, LogLevel } from '@carpool/core'
import { GuestIsolate, type Bootstrap, type GuestCallback, type GuestCode } from '@carpool/isolate'
import type { Pooled } from '@carpool/isolate-pool'
import {
  ENTROPY_BYTES,
  type BodyKind,
  type GuestBridge,
  type GuestEntries,
  type GuestOptions,
  type LoadReport,
} from '@carpool/runtime/bridge'
import { LoadFailure } from './load-failure.ts'
import { TimerTable } from './timer-table.ts'

/** What a guest tells its host. Numbers and texts come from the guest: trust neither. */
export interface GuestListener {
  answered(guest: Guest, invocation: number, head: string, kind: BodyKind, body: string): void
  failed(guest: Guest, invocation: number, failure: string): void
  fetchStarted(guest: Guest, invocation: number, fetch: number, head: string, kind: BodyKind, body: string): void
  fetchStopped(guest: Guest, fetch: number): void
  logged(guest: Guest, invocation: number, level: LogLevel, text: string): void
  /** V8 gave up on the isolate: the process must end. */
  catastrophe(reason: string): void
}

const ENTRY_NAMES = ['load', 'invoke', 'cancel', 'fireTimer', 'settleFetch'] as const satisfies ReadonlyArray<keyof GuestEntries>

/** An isolate with the guest runtime in it: first blank, then, once loaded, one revision of a function. */
export class Guest implements Pooled {
  /** Monotonic time at which the guest last called the host, in ms. */
  heardAtMs = performance.now()
  /** Fetches that the guest waits for; the fetch table counts them. */
  openFetches = 0
  readonly #isolate: GuestIsolate
  readonly #timers: TimerTable
  readonly #relay: Relay
  #revision = ''
  #form: HandlerForm = 'fetch'

  private constructor(isolate: GuestIsolate, relay: Relay) {
    this.#isolate = isolate
    this.#relay = relay
    this.#timers = new TimerTable((timer) => isolate.enter('fireTimer', timer))
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
    const guest = new Guest(isolate, relay)
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

  get hasBackgroundWork(): boolean {
    return this.#timers.size > 0 || this.openFetches > 0
  }

  get timers(): TimerTable {
    return this.#timers
  }

  /**
   * Runs the module scope of a revision, within its wall limit.
   * @throws LoadFailure
   */
  async load(code: GuestCode, options: GuestOptions): Promise<void> {
    this.#revision = options.revision
    const report = await this.#untilLoaded(code, options)
    if (!report.ok) throw new LoadFailure(report.message, { code: report.code, guestStack: report.stack })
    this.#form = report.form
  }

  invoke(invocation: number, head: string, kind: BodyKind, body: string): void {
    this.#isolate.enter('invoke', invocation, head, kind, body)
  }

  cancel(invocation: number): void {
    this.#isolate.enter('cancel', invocation)
  }

  settleFetch(fetch: number, result: string, kind: BodyKind, body: string): void {
    this.#isolate.enter('settleFetch', fetch, result, kind, body)
  }

  dispose(): void {
    this.#timers.clear()
    this.#isolate.dispose()
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

function bridgeOf(relay: Relay, listener: GuestListener): Record<keyof GuestBridge, GuestCallback> {
  const heard = (): Guest | undefined => {
    if (relay.guest !== undefined) relay.guest.heardAtMs = performance.now()
    return relay.guest
  }
  const relayed = (call: (guest: Guest, ...args: never[]) => void): GuestCallback => ({
    blocking: false,
    call: (...args) => {
      const guest = heard()
      if (guest !== undefined) call(guest, ...args)
      return undefined
    },
  })
  return {
    loaded: relayed((_guest, report: string) => relay.onLoaded?.(JSON.parse(report) as LoadReport)),
    answer: relayed((guest, invocation: number, head: string, kind: BodyKind, body: string) =>
      listener.answered(guest, invocation, head, kind, body),
    ),
    fail: relayed((guest, invocation: number, failure: string) => listener.failed(guest, invocation, failure)),
    canceled: relayed(() => {}),
    startTimer: relayed((guest, timer: number, delayMs: number) => guest.timers.start(timer, delayMs)),
    stopTimer: relayed((guest, timer: number) => guest.timers.stop(timer)),
    startFetch: relayed((guest, invocation: number, fetch: number, head: string, kind: BodyKind, body: string) => {
      listener.fetchStarted(guest, invocation, fetch, head, kind, body)
    }),
    stopFetch: relayed((guest, fetch: number) => listener.fetchStopped(guest, fetch)),
    log: relayed((guest, invocation: number, level: LogLevel, text: string) => listener.logged(guest, invocation, level, text)),
    entropy: { blocking: true, call: () => randomBytes(ENTROPY_BYTES).toString('latin1') },
  }
}
