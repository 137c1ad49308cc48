import { KILL_POLICY, NO_USAGE, type FailedOutcome } from '@carpool/core'
import type { IsolateLease, IsolatePool } from '../isolates/isolate-pool.ts'
import type { Account } from '../accounting/account.ts'
import { packUsage, type Invoke, type PackedUsage } from '@carpool/wire'
import type { CodeStore } from '../isolates/code-store.ts'
import type { Fetches } from './fetches.ts'
import type { Guest } from '../isolates/guest.ts'
import { ActiveInvocation, InvocationTable, type Call } from './invocation-table.ts'
import { asLoadFailure } from '../isolates/load-failure.ts'
import type { Send } from '../send.ts'
import type { Stay } from '../scheduler/stay.ts'

/** A call with a longer body is not kept, to be begun again, in UTF-16 units. */
const MAX_KEPT_BODY = 64 * 1024
/** Isolates that an invocation may go into. */
const MAX_ATTEMPTS = 2

export interface InvocationsParts {
  readonly send: Send
  readonly codes: CodeStore
  readonly pool: IsolatePool<Guest>
  readonly fetches: Fetches
  /** Ends a guest whose entry goes on though its invocation is over. */
  readonly endStuck: (guest: Guest) => void
}

/** The life of invocations in this host: from their arrival, in an isolate or while one is made, to their one end. */
export class Invocations {
  readonly #parts: InvocationsParts
  readonly #table = new InvocationTable((invocation) => this.#timeOut(invocation))
  readonly #onCharged = (invocation: ActiveInvocation): void => this.#charged(invocation)

  constructor(parts: InvocationsParts) {
    this.#parts = parts
  }

  /** @param call the request, which must outlive the turn */
  begin({ invocation: number, id, revision }: Invoke, call: Call): void {
    const limits = this.#parts.codes.find(revision)?.options.limits
    if (limits === undefined) {
      const detail = 'The revision was taken out of service.'
      const usage = packUsage(NO_USAGE)
      return this.#parts.send({
        type: 'failed',
        invocation: number,
        start: 'isolate-cold',
        usage,
        outcome: 'load-failed',
        detail,
      })
    }
    const invocation = new ActiveInvocation({ number, id, revision }, limits, call, this.#onCharged)
    this.#table.add(invocation)
    this.#place(invocation, call)
  }

  /** The invocation of that number if it runs in that guest. */
  of(guest: Guest, number: number): ActiveInvocation | undefined {
    return this.#table.of(guest, number)
  }

  /** The invocation of that number, if it has not ended. */
  get(number: number): ActiveInvocation | undefined {
    return this.#table.get(number)
  }

  get count(): number {
    return this.#table.size
  }

  get underWay(): Iterable<ActiveInvocation> {
    return this.#table.values()
  }

  /** The function answered. The answer leaves when the entry that gave it is charged. */
  answer(invocation: ActiveInvocation, head: string, body: Uint8Array): void {
    if (!this.#table.end(invocation)) return
    invocation.answer = { head, body }
    this.#end(invocation)
  }

  fail(invocation: ActiveInvocation, outcome: FailedOutcome, detail: string, stack?: string): void {
    if (!this.#table.end(invocation)) return
    invocation.failure = { outcome, detail, stack }
    this.#end(invocation)
  }

  /** The client left. */
  cancel(number: number): void {
    const invocation = this.#table.get(number)
    if (invocation === undefined) return
    const guest = invocation.lease?.isolate
    this.fail(invocation, 'canceled', 'The client left before the answer.')
    if (guest !== undefined) this.#cancelIn(guest, number)
  }

  /**
   * A guest is gone. Whoever's entry it died of fails with the reason. Those that had not gone in yet go to a new isolate; so do those
   * that had, once, if nobody outside can have noticed. The others are lost.
   * @param culprit whose entry ran
   */
  lost(guest: Guest, culprit: Account, outcome: FailedOutcome, detailOf: (invocation: ActiveInvocation) => string): void {
    const unbegun = guest.queue.unbegun
    for (const invocation of this.#table.in(guest)) {
      if (unbegun.has(invocation.account)) invocation.attempts--
      const again = this.#callAgain(invocation)
      if (invocation.account === culprit) {
        const detail = detailOf(invocation)
        this.fail(invocation, outcome, detail, detail)
      } else if (again !== undefined) {
        this.#table.unbind(invocation)
        this.#place(invocation, again)
      } else {
        const detail = 'Another invocation of the function brought the isolate down.'
        this.fail(invocation, 'isolate-lost', detail, detail)
      }
    }
  }

  /** What a start took that nobody waits for (any more). */
  chargeStart(revision: string, cpuNs: number): void {
    const cpuUs = Math.round(cpuNs / 1000)
    if (cpuUs > 0) this.#parts.send({ type: 'background', revision, cpuUs, egressBytesOut: 0, egressBytesIn: 0 })
  }

  /** A stay has ended: whoever has used more than the limit in many short entries goes no further. */
  endOverLimit(guest: Guest, { accounts }: Stay): void {
    const { cpuMs } = guest.limits
    for (const account of accounts) {
      if (account.cpuNs < cpuMs * 1e6 || account.open !== account) continue
      const invocation = this.#table.in(guest).find((one) => one.account === account)
      if (invocation === undefined) continue
      const detail = `More CPU time than the limit of ${cpuMs} ms.`
      this.fail(invocation, 'cpu-exceeded', detail, detail)
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
        invocation.initMs = initMsOf(invocation)
        invocation.waitsSinceMs = undefined
        invocation.initCpuNs += lease.isolate.start.take().cpuNs
        this.#enter(invocation, lease, call)
      },
      (cause: unknown) => {
        const failure = asLoadFailure(cause)
        if (this.#table.has(invocation)) invocation.initCpuNs += failure.takeCpuNs()
        else this.chargeStart(invocation.revision, failure.takeCpuNs())
        const { outcome, message, guestStack } = failure
        const detail =
          outcome === 'load-failed' ? 'The module scope threw an error; the log of the function has the stack.' : message
        this.fail(invocation, outcome, detail, guestStack || message)
      },
    )
  }

  #enter(invocation: ActiveInvocation, lease: IsolateLease<Guest>, call: Call): void {
    // While the isolate loaded, the time may have run out or the client may have left; what the start took is the function's then.
    if (!this.#table.has(invocation)) {
      this.chargeStart(invocation.revision, invocation.initCpuNs)
      return lease.release()
    }
    invocation.attempts++
    invocation.lease = lease
    if (call.body.length > MAX_KEPT_BODY) invocation.call = undefined
    lease.isolate.invoke(invocation.account, invocation.number, call.head, call.kind, call.body)
  }

  #timeOut(invocation: ActiveInvocation): void {
    const { wallMs } = invocation.limits
    const guest = invocation.lease?.isolate
    const stay = guest?.stay
    const isItsTurn = stay?.current === invocation.account
    const detail = `No answer within the wall limit of ${wallMs} ms.`
    this.fail(invocation, 'timeout', detail, detail)
    if (guest === undefined) return
    this.#cancelIn(guest, invocation.number)
    if (!isItsTurn) return
    // Most entries end by themselves, and the others of the function need not suffer for those.
    setTimeout(() => {
      if (guest.stay === stay && stay?.current === invocation.account) this.#parts.endStuck(guest)
    }, KILL_POLICY.wallGraceMs)
  }

  #cancelIn(guest: Guest, number: number): void {
    guest.cancel(number)
    this.#parts.fetches.stopOf(guest, number)
  }

  #end(invocation: ActiveInvocation): void {
    if (invocation.lease === undefined) this.#tell(invocation)
    else invocation.lease.isolate.queue.whenCharged(invocation)
  }

  #charged(invocation: ActiveInvocation): void {
    const { account, lease } = invocation
    this.#tell(invocation)
    if (lease === undefined) return
    account.close(lease.isolate.background)
    lease.release()
  }

  #tell(invocation: ActiveInvocation): void {
    const { number, start, answer, failure } = invocation
    const usage = usageOf(invocation)
    if (answer !== undefined) {
      this.#parts.send({ type: 'answer', invocation: number, start, usage }, answer.head, answer.body)
    } else if (failure !== undefined) {
      const { outcome, detail, stack } = failure
      const failed = { type: 'failed', invocation: number, start, usage, outcome, detail } as const
      this.#parts.send(stack === undefined ? failed : { ...failed, stack })
    }
  }
}

/** What an invocation has used so far. */
export function usageOf(invocation: ActiveInvocation): PackedUsage {
  const { account, initCpuNs, attempts, lease } = invocation
  return packUsage({
    cpuUs: Math.round(account.cpuNs / 1000),
    initUs: Math.round(initMsOf(invocation) * 1000),
    initCpuUs: Math.round(initCpuNs / 1000),
    memoryPeakKb: lease?.isolate.memoryPeakKb ?? 0,
    egressBytesOut: account.egressBytesOut,
    egressBytesIn: account.egressBytesIn,
    attempts,
  })
}

function initMsOf({ initMs, waitsSinceMs }: ActiveInvocation): number {
  return waitsSinceMs === undefined ? initMs : initMs + performance.now() - waitsSinceMs
}
