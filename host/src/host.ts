import { LIMIT_RANGES, type FailedOutcome, type LogLevel } from '@carpool/core'
import { Bootstrap, compileToCache } from '@carpool/isolate'
import { IsolatePool, Prewarmer, type IsolateLease } from '@carpool/isolate-pool'
import { NO_INVOCATION, type BodyKind, type GuestFailure } from '@carpool/runtime/bridge'
import { NO_BODY, type Frame, type Invoke, type Setup, type ToHost, type ToServer } from '@carpool/wire'
import { decodeBody, encodeBody } from './body-codec.ts'
import { CodeStore } from './code-store.ts'
import { FetchTable } from './fetch-table.ts'
import { Guest, type GuestListener } from './guest.ts'
import { InvocationTable, type ActiveInvocation } from './invocation-table.ts'
import { LoadFailure } from './load-failure.ts'
import { StallWatch } from './stall-watch.ts'

/** Sends a message to the server. */
export type Send = (message: ToServer, text?: string, body?: Uint8Array) => void

export interface HostOptions {
  readonly setup: Setup
  /** The guest runtime's script. */
  readonly runtime: string
  readonly send: Send
  /** The process cannot go on: V8 gave up on an isolate. */
  readonly onCatastrophe: (reason: string) => void
}

/** How often to look for isolates that V8 disposed, which tell nobody, in ms. */
const ORPHAN_CHECK_MS = 25
/** What a fetch of an ended invocation gives, as a FetchResult. */
const INVOCATION_ENDED = JSON.stringify({ ok: false, message: 'The invocation has ended.' })
/** How long a retired isolate may go on with work that nobody waits for, in ms. */
const LINGER_MS = 30_000

/** Runs invocations in isolates, as the server's messages say. */
export class Host implements GuestListener {
  readonly #send: Send
  readonly #maxBodyBytes: number
  readonly #onCatastrophe: (reason: string) => void
  readonly #prewarmer: Prewarmer<Guest>
  readonly #pool: IsolatePool<Guest>
  readonly #codes = new CodeStore()
  readonly #invocations = new InvocationTable()
  readonly #fetches = new FetchTable()
  readonly #stallWatch = new StallWatch<Guest>((guest) => this.#endStuck(guest))
  #orphanCheck: NodeJS.Timeout | undefined

  constructor({ setup, runtime, send, onCatastrophe }: HostOptions) {
    this.#send = send
    this.#maxBodyBytes = setup.maxBodyBytes
    this.#onCatastrophe = onCatastrophe
    const bootstrap = new Bootstrap(runtime)
    this.#prewarmer = new Prewarmer((memoryLimitMb) => Guest.blank(bootstrap, memoryLimitMb, this), setup.prewarm)
    this.#pool = new IsolatePool({
      load: (revision) => this.#load(revision),
      maxIsolates: setup.maxIsolates,
      lingerMs: LINGER_MS,
    })
  }

  /** Gets the first blank isolates ready. */
  async prepare(): Promise<void> {
    this.#prewarmer.open(LIMIT_RANGES.memoryMb.default)
    await this.#prewarmer.fill()
  }

  receive({ message, text, body }: Frame<Exclude<ToHost, Setup>>): void {
    switch (message.type) {
      case 'load':
        return this.#codes.put(message, text, body)
      case 'compile':
        return void this.#compile(message.revision)
      case 'start':
        return void this.#start(message.revision)
      case 'retire':
        this.#pool.retire(message.revision)
        return this.#codes.delete(message.revision)
      case 'invoke':
        return this.#invoke(message, text, body)
      case 'cancel':
        return this.#cancel(message.invocation)
      case 'fetch-settled':
        return this.#settleFetch(message.fetch, text, body)
    }
  }

  answered(guest: Guest, number: number, head: string, kind: BodyKind, body: string): void {
    const invocation = this.#invocations.of(guest, number)
    if (invocation === undefined) return
    const bytes = decodeBody(kind, body)
    if (bytes.length > this.#maxBodyBytes) {
      const detail = `The response body has ${bytes.length} bytes; the limit is ${this.#maxBodyBytes}.`
      return this.#fail(invocation, 'invalid-response', detail, detail)
    }
    if (this.#invocations.end(invocation))
      this.#send({ type: 'answer', invocation: number, start: invocation.start }, head, bytes)
  }

  failed(guest: Guest, number: number, text: string): void {
    const invocation = this.#invocations.of(guest, number)
    if (invocation === undefined) return
    const failure = JSON.parse(text) as GuestFailure
    const detail = failure.outcome === 'exception' ? 'The function threw an error; its log has the stack.' : failure.message
    this.#fail(invocation, failure.outcome, detail, failure.stack || failure.message)
  }

  fetchStarted(guest: Guest, number: number, guestFetch: number, head: string, kind: BodyKind, body: string): void {
    const bytes = decodeBody(kind, body)
    if (bytes.length > this.#maxBodyBytes) {
      const message = `The request body has ${bytes.length} bytes; the limit is ${this.#maxBodyBytes}.`
      return guest.settleFetch(guestFetch, JSON.stringify({ ok: false, message }), 'none', '')
    }
    const fetch = this.#fetches.add(guest, guestFetch, number)
    this.#watchForOrphans()
    const id = this.#idOf(guest, number)
    this.#send({ type: 'fetch', fetch, revision: guest.revision, ...(id !== undefined && { id }) }, head, bytes)
  }

  fetchStopped(guest: Guest, guestFetch: number): void {
    const fetch = this.#fetches.stop(guest, guestFetch)
    if (fetch !== undefined) this.#send({ type: 'fetch-stop', fetch })
  }

  canceled(guest: Guest, number: number): void {
    // Those that it started while the cancel was on its way to it.
    if (number !== NO_INVOCATION) this.#stopFetches(guest, number)
  }

  logged(guest: Guest, number: number, level: LogLevel, text: string): void {
    const id = this.#idOf(guest, number)
    this.#send({ type: 'log', revision: guest.revision, level, ...(id !== undefined && { id }) }, text)
  }

  catastrophe(reason: string): void {
    this.#onCatastrophe(reason)
  }

  async #load(revision: string): Promise<Guest> {
    const { code, options } = this.#codes.get(revision)
    const guest = await this.#prewarmer.take(options.limits.memoryMb)
    await guest.load(code, options)
    this.#stallWatch.add(guest)
    return guest
  }

  async #compile(revision: string): Promise<void> {
    const stored = this.#codes.find(revision)
    const cache = stored && (await compileToCache(stored.code, stored.options.limits.memoryMb))
    this.#send({ type: 'compiled', revision }, '', cache ?? NO_BODY)
  }

  async #start(revision: string): Promise<void> {
    try {
      const lease = await this.#pool.acquire(revision)
      const { form } = lease.isolate
      lease.release()
      this.#send({ type: 'started', revision, result: { ok: true, form } })
    } catch (cause) {
      const { code, message, guestStack: stack } = asLoadFailure(cause)
      this.#send({ type: 'started', revision, result: { ok: false, code, message, stack } })
    }
  }

  #invoke({ invocation: number, id, revision }: Invoke, head: string, body: Uint8Array): void {
    const limits = this.#codes.find(revision)?.options.limits
    if (limits === undefined) {
      const detail = 'The revision was taken out of service.'
      return this.#send({ type: 'failed', invocation: number, start: 'isolate-cold', outcome: 'load-failed', detail })
    }
    const invocation: ActiveInvocation = {
      number,
      id,
      limits,
      start: 'warm',
      lease: undefined,
      wallLimit: setTimeout(() => this.#timeOut(invocation), limits.wallMs),
    }
    this.#invocations.add(invocation)
    this.#watchForOrphans()
    const warm = this.#pool.acquireWarm(revision)
    if (warm !== undefined) return this.#enter(invocation, warm, head, body)
    invocation.start = 'isolate-cold'
    // The body is a view into a chunk of the connection, and now has to outlive the turn.
    const kept = body.slice()
    this.#pool.acquire(revision).then(
      (lease) => this.#enter(invocation, lease, head, kept),
      (cause: unknown) => {
        const { outcome, message, guestStack } = asLoadFailure(cause)
        const detail =
          outcome === 'load-failed' ? 'The module scope threw an error; the log of the function has the stack.' : message
        this.#fail(invocation, outcome, detail, guestStack || message)
      },
    )
  }

  #enter(invocation: ActiveInvocation, lease: IsolateLease<Guest>, head: string, body: Uint8Array): void {
    // While the isolate loaded, the time may have run out or the client may have left.
    if (this.#invocations.get(invocation.number) !== invocation) return lease.release()
    this.#invocations.bind(invocation, lease)
    const [kind, text] = encodeBody(body)
    lease.isolate.invoke(invocation.number, head, kind, text)
  }

  #timeOut(invocation: ActiveInvocation): void {
    const { wallMs } = invocation.limits
    const guest = invocation.lease?.isolate
    const detail = `No answer within the wall limit of ${wallMs} ms.`
    this.#fail(invocation, 'timeout', detail, detail)
    if (guest !== undefined) this.#cancelIn(guest, invocation.number)
  }

  /** Ends a guest that is stuck in user code, with the invocations that wait behind what holds it up. */
  #endStuck(guest: Guest): void {
    guest.dispose()
    for (const other of this.#invocations.in(guest)) {
      const detail = 'Other work of the function held the isolate past the wall limit, so it was ended.'
      this.#fail(other, 'isolate-lost', detail, detail)
    }
  }

  #cancel(number: number): void {
    const invocation = this.#invocations.get(number)
    if (invocation === undefined) return
    this.#fail(invocation, 'canceled', 'The client left before the answer.')
    if (invocation.lease !== undefined) this.#cancelIn(invocation.lease.isolate, number)
  }

  #cancelIn(guest: Guest, number: number): void {
    guest.cancel(number)
    this.#stopFetches(guest, number)
  }

  #stopFetches(guest: Guest, invocation: number): void {
    for (const { number, guestFetch } of this.#fetches.takeOf(guest, invocation)) {
      this.#send({ type: 'fetch-stop', fetch: number })
      guest.settleFetch(guestFetch, INVOCATION_ENDED, 'none', '')
    }
  }

  #settleFetch(number: number, result: string, body: Uint8Array): void {
    const fetch = this.#fetches.take(number)
    if (fetch !== undefined) fetch.guest.settleFetch(fetch.guestFetch, result, ...encodeBody(body))
  }

  #watchForOrphans(): void {
    this.#orphanCheck ??= setInterval(() => this.#failOrphans(), ORPHAN_CHECK_MS)
  }

  #failOrphans(): void {
    for (const invocation of this.#invocations.orphans()) {
      const detail = `The isolate passed its memory limit of ${invocation.limits.memoryMb} MiB.`
      this.#fail(invocation, 'memory-exceeded', detail, detail)
    }
    for (const { number } of this.#fetches.takeOrphans()) this.#send({ type: 'fetch-stop', fetch: number })
    if (this.#invocations.size > 0 || this.#fetches.size > 0) return
    clearInterval(this.#orphanCheck)
    this.#orphanCheck = undefined
  }

  #fail(invocation: ActiveInvocation, outcome: FailedOutcome, detail: string, stack?: string): void {
    if (!this.#invocations.end(invocation)) return
    const { number, start } = invocation
    this.#send({ type: 'failed', invocation: number, start, outcome, detail, ...(stack !== undefined && { stack }) })
  }

  #idOf(guest: Guest, number: number): string | undefined {
    return number === NO_INVOCATION ? undefined : this.#invocations.of(guest, number)?.id
  }
}

function asLoadFailure(cause: unknown): LoadFailure {
  return cause instanceof LoadFailure
    ? cause
    : new LoadFailure('The function could not be loaded.', { guestStack: String(cause) })
}
