import { KILL_POLICY, MAX_RESPONSE_HEAD, NO_USAGE, NumberedTable, type FailedOutcome, type LogLevel } from '@carpool/core'
import { NO_INVOCATION, type BodyKind, type GuestFailure } from '@carpool/runtime/bridge'
import { LARGE_BYTES, NO_BODY, packUsage, STREAM_MOVED_MS, type BodyTurns, type Invoke } from '@carpool/wire'
import type { Account } from '../accounting/account.ts'
import { asLoadFailure, type CodeStore } from '../isolates/code-store.ts'
import type { EnteredCalls, Guest } from '../isolates/guest.ts'
import { decodeBody } from '../isolates/guest-bridge.ts'
import type { IsolateLease, IsolatePool } from '../isolates/isolate-pool.ts'
import { WallLimits } from '../limits/wall-limits.ts'
import type { Batch } from '../scheduler/batch.ts'
import type { Send } from '../send.ts'
import type { Fetches } from './fetches.ts'
import { ActiveInvocation, IdleTime, type Call } from './invocation.ts'
import type { Sockets } from './sockets.ts'
import type { Stream, Streams } from './streams.ts'

/** A call with a longer body is not kept, to be begun again, in UTF-16 units. */
const MAX_KEPT_BODY = 64 * 1024
/** What moves past this host is told so much later at most, in ms. */
const TOLD_LATE_MS = 2 * STREAM_MOVED_MS
/** Isolates that an invocation may go into. */
const MAX_ATTEMPTS = 2

export interface InvocationsParts {
  readonly send: Send
  readonly codes: CodeStore
  readonly pool: IsolatePool<Guest>
  readonly bodies: BodyTurns
  readonly fetches: Fetches
  readonly sockets: Sockets
  readonly streams: Streams
  readonly maxBodyBytes: number
  /** Ends a guest whose entry goes on though its invocation is over. */
  readonly endStuck: (guest: Guest) => void
}

/**
 * The invocations in this host: from their arrival, in an isolate or while one is made, to their one end. Guests act on them by
 * messages.
 */
export class Invocations implements EnteredCalls {
  readonly #parts: InvocationsParts
  readonly #active = new NumberedTable<ActiveInvocation>()
  readonly #wallLimits = new WallLimits<ActiveInvocation>((invocation) => this.#timeOut(invocation))
  /** Those of which the head was sent. */
  readonly #streamLimits = new WallLimits<ActiveInvocation>((invocation) => {
    this.#endStreaming(invocation, `The answer took more than the stream limit of ${invocation.limits.streamMs} ms.`)
  })
  readonly #idleLimits = new WallLimits<IdleTime>(({ invocation }) => {
    this.#endStreaming(invocation, `No byte came or went within the idle limit of ${invocation.limits.idleMs} ms.`)
  })
  readonly #onCharged = (invocation: ActiveInvocation): void => this.#charged(invocation)
  /** Those of this turn that have given their slots back. */
  #returned: number[] = []

  constructor(parts: InvocationsParts) {
    this.#parts = parts
  }

  /** @param call the request, which must outlive the turn */
  begin({ invocation: number, id, revision, streams }: Invoke, call: Call): void {
    const limits = this.#parts.codes.find(revision)?.options.limits
    if (limits === undefined) {
      const [outcome, detail] = ['load-failed', 'The revision was taken out of service.'] as const
      const usage = packUsage(NO_USAGE)
      return this.#parts.send({ type: 'failed', invocation: number, start: 'isolate-cold', usage, outcome, detail })
    }
    const invocation = new ActiveInvocation({ number, id, revision }, limits, call, this.#onCharged)
    this.#active.set(number, invocation)
    this.#wallLimits.add(invocation, limits.wallMs)
    if (streams === true) {
      invocation.stream = this.#openStream(invocation)
      // What has come of it cannot come again.
      invocation.call = undefined
    }
    this.#place(invocation, call)
  }

  get count(): number {
    return this.#active.size
  }

  get active(): Iterable<ActiveInvocation> {
    return this.#active.values()
  }

  accountOf(guest: Guest, number: number): Account | undefined {
    return this.#of(guest, number)?.account
  }

  /** The answer leaves when the entry that gave it is charged. */
  answered(guest: Guest, number: number, head: string, kind: BodyKind, text: string): void {
    const invocation = this.#of(guest, number)
    if (invocation === undefined) return
    // The guest refuses it as well, but the server should never have to read it.
    if (head.length > MAX_RESPONSE_HEAD) {
      const detail = `The head of the response has ${head.length} characters; the limit is ${MAX_RESPONSE_HEAD}.`
      return this.#fail(invocation, 'invalid-response', detail, detail)
    }
    const body = decodeBody(kind, text)
    const { maxBodyBytes } = this.#parts
    if (body.length > maxBodyBytes) {
      const detail = `The response body has ${body.length} bytes; the limit is ${maxBodyBytes}.`
      return this.#fail(invocation, 'invalid-response', detail, detail)
    }
    if (!this.#remove(invocation)) return
    invocation.answer = { head, body }
    this.#end(invocation)
  }

  /** The body streams behind the head, which leaves at once. */
  headAnswered(guest: Guest, number: number, head: string): void {
    const invocation = this.#of(guest, number)
    if (invocation === undefined || invocation.isHeadSent) return
    if (head.length > MAX_RESPONSE_HEAD) {
      const detail = `The head of the response has ${head.length} characters; the limit is ${MAX_RESPONSE_HEAD}.`
      return this.#fail(invocation, 'invalid-response', detail, detail)
    }
    const { limits, start } = invocation
    invocation.isHeadSent = true
    invocation.call = undefined
    invocation.stream ??= this.#openStream(invocation)
    invocation.stream.attach(guest)
    this.#wallLimits.remove(invocation)
    if (limits.streamMs > 0) this.#streamLimits.add(invocation, limits.streamMs)
    if (limits.idleMs > 0) this.#idleLimits.add((invocation.idle = new IdleTime(invocation)), limits.idleMs)
    invocation.stream.inOrder(NO_BODY, () => this.#parts.send({ type: 'answer-head', invocation: number, start }, head))
  }

  /** The body is whole, and has left. */
  answerEnded(guest: Guest, number: number): void {
    const invocation = this.#of(guest, number)
    if (invocation?.isHeadSent === true && this.#remove(invocation)) this.#end(invocation)
  }

  failed(guest: Guest, number: number, text: string): void {
    const invocation = this.#of(guest, number)
    if (invocation === undefined) return
    const failure = JSON.parse(text) as GuestFailure
    const detail = failure.outcome === 'exception' ? 'The function threw an error; its log has the stack.' : failure.message
    this.#fail(invocation, failure.outcome, detail, failure.stack || failure.message)
  }

  fetchStarted(guest: Guest, number: number, guestFetch: number, head: string, kind: BodyKind, body: string): void {
    const id = this.#hadEffect(guest, number)
    this.#parts.fetches.start(guest, { invocation: number, id, guestFetch }, head, kind, body)
  }

  fetchStopped(guest: Guest, guestFetch: number): void {
    this.#parts.fetches.stop(guest, guestFetch)
  }

  socketOpened(guest: Guest, number: number, guestSocket: number, target: string): void {
    const id = this.#hadEffect(guest, number)
    this.#parts.sockets.open(guest, { invocation: number, id, guestSocket }, target)
  }

  socketUsed(guest: Guest, number: number, guestSocket: number): void {
    this.#hadEffect(guest, number)
    this.#parts.sockets.sentBy(guest, guestSocket, number)
  }

  tlsStarted(guest: Guest, guestSocket: number, options: string): void {
    this.#parts.sockets.startTls(guest, guestSocket, options)
  }

  socketStopped(guest: Guest, guestSocket: number): void {
    this.#parts.sockets.stop(guest, guestSocket)
  }

  canceled(guest: Guest, number: number): void {
    // Those that it started while the cancel was on its way to it.
    if (number !== NO_INVOCATION) this.#parts.fetches.stopOf(guest, number)
  }

  logged(guest: Guest, number: number, level: LogLevel, text: string, isRejection: boolean): void {
    const id = this.#hadEffect(guest, number)
    const { revision } = guest
    this.#parts.send(
      { type: 'log', revision, level, ...(id !== undefined && { id }), ...(isRejection && { rejections: 1 }) },
      text,
    )
  }

  /** Without an answer by now the invocation waits, and gives its slot back, so that others may run. */
  entryRan(number: number): void {
    const invocation = this.#active.get(number)
    if (invocation === undefined) return
    invocation.account.hasReturnedSlot = true
    this.#returned.push(number)
    if (this.#returned.length === 1) queueMicrotask(() => this.#sendReturned())
  }

  /** The client left. */
  cancel(number: number): void {
    const invocation = this.#active.get(number)
    if (invocation === undefined) return
    const guest = invocation.lease?.isolate
    this.#fail(invocation, 'canceled', 'The client left before the answer.')
    if (guest !== undefined) this.#cancelIn(guest, number)
  }

  /**
   * Called when an isolate was disposed. The invocation of the culprit fails with the reason. Those that had not gone in yet go
   * to a new isolate; so do those that had, once, if they have had no effect outside. The others are lost.
   * @param culprit the account of the entry that ran
   */
  isolateLost(guest: Guest, culprit: Account, outcome: FailedOutcome, detailOf: (invocation: ActiveInvocation) => string): void {
    const notStarted = guest.queue.notStarted
    for (const invocation of this.#in(guest)) {
      if (notStarted.has(invocation.account)) invocation.attempts--
      // What was sent by a socket may have been for any of them.
      const again = guest.hadSockets && !notStarted.has(invocation.account) ? undefined : this.#callAgain(invocation)
      if (invocation.account === culprit) {
        const detail = detailOf(invocation)
        this.#fail(invocation, outcome, detail, detail)
      } else if (again !== undefined) {
        const { lease } = invocation
        invocation.lease = undefined
        lease?.release()
        this.#place(invocation, again)
      } else {
        const detail = 'Another invocation of the function brought the isolate down.'
        this.#fail(invocation, 'isolate-lost', detail, detail)
      }
    }
  }

  /** Charges a start that no invocation waits for (any more) to the function. */
  chargeStart(revision: string, cpuNs: number): void {
    const cpuUs = Math.round(cpuNs / 1000)
    if (cpuUs === 0) return
    this.#parts.send({ type: 'background', revision, cpuUs, egressBytesOut: 0, egressBytesIn: 0, sockets: 0, socketUs: 0 })
  }

  /** Called after a batch was charged: an invocation that has used more than the limit in many short entries goes no further. */
  endOverCpuLimit(guest: Guest, { accounts }: Batch): void {
    const { cpuMs } = guest.limits
    for (const account of accounts) {
      if (account.cpuNs < cpuMs * 1e6 || account.open !== account) continue
      const invocation = this.#in(guest).find((one) => one.account === account)
      if (invocation === undefined) continue
      const detail = `More CPU time than the limit of ${cpuMs} ms.`
      this.#fail(invocation, 'cpu-exceeded', detail, detail)
      this.#cancelIn(guest, invocation.number)
    }
  }

  /** What to begin an invocation again with, if it may. */
  #callAgain({ call, attempts, revision }: ActiveInvocation): Call | undefined {
    return attempts < MAX_ATTEMPTS && this.#parts.codes.find(revision) !== undefined ? call : undefined
  }

  #place(invocation: ActiveInvocation, call: Call): void {
    const { pool } = this.#parts
    const warm = pool.acquireWarm(invocation.revision)
    if (warm !== undefined) return this.#enter(invocation, warm, call)
    invocation.start = 'isolate-cold'
    invocation.waitsSinceMs = performance.now()
    pool.acquire(invocation.revision).then(
      (lease) => {
        invocation.endWait()
        invocation.initCpuNs += lease.isolate.start.take().cpuNs
        this.#enter(invocation, lease, call)
      },
      (cause: unknown) => {
        const failure = asLoadFailure(cause)
        if (this.#has(invocation)) invocation.initCpuNs += failure.takeCpuNs()
        else this.chargeStart(invocation.revision, failure.takeCpuNs())
        const { outcome, message, guestStack } = failure
        const detail =
          outcome === 'load-failed' ? 'The module scope threw an error; the log of the function has the stack.' : message
        this.#fail(invocation, outcome, detail, guestStack || message)
      },
    )
  }

  #enter(invocation: ActiveInvocation, lease: IsolateLease<Guest>, call: Call): void {
    // While the isolate loaded, the time may have run out or the client may have left; what the start took is the function's
    // then.
    if (!this.#has(invocation)) {
      this.chargeStart(invocation.revision, invocation.initCpuNs)
      return lease.release()
    }
    invocation.attempts++
    invocation.lease = lease
    lease.isolate.callsUnderWay++
    if (call.body.length > MAX_KEPT_BODY) invocation.call = undefined
    lease.isolate.invoke(invocation.account, invocation.number, call.head, call.kind, call.body)
    invocation.stream?.attach(lease.isolate)
  }

  #openStream(invocation: ActiveInvocation): Stream {
    const { number, account } = invocation
    const detail = 'More of the response was sent than the client takes.'
    const { idleMs } = invocation.limits
    return this.#parts.streams.open({
      of: 'call',
      number,
      account,
      listener: {
        moved: () => {
          const { idle, stream } = invocation
          if (idle !== undefined) this.#idleLimits.restart(idle, stream?.isJoined === true ? idleMs + TOLD_LATE_MS : idleMs)
        },
        overran: () => this.#fail(invocation, 'invalid-response', detail, detail),
      },
    })
  }

  /** It has sent its head, and takes longer than it may. */
  #endStreaming(invocation: ActiveInvocation, detail: string): void {
    const guest = invocation.lease?.isolate
    this.#fail(invocation, 'timeout', detail, detail)
    if (guest !== undefined) this.#cancelIn(guest, invocation.number)
  }

  #timeOut(invocation: ActiveInvocation): void {
    const { wallMs } = invocation.limits
    const guest = invocation.lease?.isolate
    const batch = guest?.batch
    const isRunning = batch?.current === invocation.account
    const detail = `No answer within the wall limit of ${wallMs} ms.`
    this.#fail(invocation, 'timeout', detail, detail)
    if (guest === undefined) return
    this.#cancelIn(guest, invocation.number)
    if (!isRunning) return
    // Most entries end by themselves, and the others of the function need not suffer for those.
    setTimeout(() => {
      if (guest.batch === batch && batch?.current === invocation.account) this.#parts.endStuck(guest)
    }, KILL_POLICY.wallGraceMs)
  }

  #cancelIn(guest: Guest, number: number): void {
    guest.cancel(number)
    this.#parts.fetches.stopOf(guest, number)
  }

  #fail(invocation: ActiveInvocation, outcome: FailedOutcome, detail: string, stack?: string): void {
    if (!this.#remove(invocation)) return
    invocation.failure = { outcome, detail, stack }
    this.#end(invocation)
  }

  /** Its end is sent when what it used is charged. */
  #end(invocation: ActiveInvocation): void {
    if (invocation.lease === undefined) this.#sendEnd(invocation)
    else invocation.lease.isolate.queue.whenCharged(invocation)
  }

  #charged(invocation: ActiveInvocation): void {
    const { account, lease } = invocation
    this.#sendEnd(invocation)
    if (lease === undefined) return
    account.close(lease.isolate.background)
    lease.isolate.callsUnderWay--
    lease.release()
  }

  #sendEnd(invocation: ActiveInvocation): void {
    const { number, start, answer, failure, usage, lease, stream, isHeadSent } = invocation
    if (isHeadSent && failure === undefined) {
      stream!.inOrder(NO_BODY, () => this.#parts.send({ type: 'answer-end', invocation: number, start, usage }))
    } else if (answer !== undefined) {
      const { head, body } = answer
      const message = { type: 'answer', invocation: number, start, usage } as const
      const holder = lease?.isolate.holder
      if (holder === undefined || body.length < LARGE_BYTES) return this.#parts.send(message, head, body)
      this.#parts.bodies.enter(holder, body, (sent) => this.#parts.send(message, head, sent))
    } else if (failure !== undefined) {
      const { outcome, detail, stack } = failure
      const failed = { type: 'failed', invocation: number, start, usage, outcome, detail } as const
      const message = stack === undefined ? failed : { ...failed, stack }
      if (isHeadSent) stream!.inOrder(NO_BODY, () => this.#parts.send(message))
      else this.#parts.send(message)
    }
  }

  #sendReturned(): void {
    this.#parts.send({ type: 'waiting', invocations: this.#returned })
    this.#returned = []
  }

  /**
   * The guest's invocation of that number had an effect outside, so it cannot be begun again unnoticed.
   * @returns its public id, if there is one
   */
  #hadEffect(guest: Guest, number: number): string | undefined {
    const invocation = this.#of(guest, number)
    if (invocation === undefined) return undefined
    invocation.call = undefined
    return invocation.id
  }

  /** The invocation of that number if it runs in that guest; a guest cannot name another's. */
  #of(guest: Guest, number: number): ActiveInvocation | undefined {
    const invocation = this.#active.get(number)
    return invocation?.lease?.isolate === guest ? invocation : undefined
  }

  /** Those that run in that guest. Searches all: that is needed when an isolate is lost, or an invocation has passed a limit. */
  #in(guest: Guest): ActiveInvocation[] {
    return [...this.#active.values()].filter(({ lease }) => lease?.isolate === guest)
  }

  #has(invocation: ActiveInvocation): boolean {
    return this.#active.get(invocation.number) === invocation
  }

  /** @returns true for the first caller, who then has to send its end and to release its lease; false if it had ended */
  #remove(invocation: ActiveInvocation): boolean {
    if (!this.#has(invocation)) return false
    this.#active.delete(invocation.number)
    this.#wallLimits.remove(invocation)
    if (invocation.idle !== undefined) this.#idleLimits.remove(invocation.idle)
    invocation.stream?.close()
    return true
  }
}
