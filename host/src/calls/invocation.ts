import type { FailedOutcome, FunctionLimits } from '@carpool/core'
import type { BodyKind } from '@carpool/runtime/bridge'
import { packUsage, type HostStart, type PackedUsage } from '@carpool/wire'
import { Account } from '../accounting/account.ts'
import type { Guest } from '../isolates/guest.ts'
import type { IsolateLease } from '../isolates/isolate-pool.ts'
import { Limited } from '../limits/wall-limits.ts'
import type { Charged } from '../scheduler/entry-queue.ts'
import type { Stream } from './streams.ts'

/** The request of an invocation as it enters a guest. */
export interface Call {
  readonly head: string
  readonly kind: BodyKind
  readonly body: string
}

/** The end of an invocation that answered. */
export interface Answer {
  readonly head: string
  readonly body: Uint8Array
}

/** The end of one that did not. */
export interface Failure {
  readonly outcome: FailedOutcome
  readonly detail: string
  readonly stack: string | undefined
}

/** An invocation in this host, from its arrival until its end is sent. */
export class ActiveInvocation extends Limited implements Charged {
  readonly number: number
  readonly id: string
  readonly revision: string
  readonly limits: FunctionLimits
  readonly account = new Account()
  start: HostStart = 'warm'
  /** How long it waited for isolates, in ms, without the wait that is under way. */
  initMs = 0
  /** Since when it waits for an isolate, in ms. */
  waitsSinceMs: number | undefined = undefined
  /** CPU time of starts that it caused, in ns. */
  initCpuNs = 0
  /** Isolates in which it was begun. */
  attempts = 0
  /** Kept as long as it could be begun again elsewhere without anybody noticing. */
  call: Call | undefined
  /** Absent while the isolate loads. */
  lease: IsolateLease<Guest> | undefined = undefined
  /** Of its request's body, or of its answer's. */
  stream: Stream | undefined = undefined
  /** Since the head of its answer was sent: it ends when no byte has moved for so long. */
  idle: IdleTime | undefined = undefined
  isHeadSent = false
  /** CPU time of its account when that was last reported, in ns. */
  reportedNs = 0
  answer: Answer | undefined = undefined
  failure: Failure | undefined = undefined
  readonly #onCharged: (invocation: ActiveInvocation) => void

  /** @param onCharged called once it has ended, and what it used until then is charged */
  constructor(
    { number, id, revision }: InvocationName,
    limits: FunctionLimits,
    call: Call,
    onCharged: (invocation: ActiveInvocation) => void,
  ) {
    super()
    this.number = number
    this.id = id
    this.revision = revision
    this.limits = limits
    this.call = call
    this.#onCharged = onCharged
  }

  get runsOn(): boolean {
    return this.failure?.outcome === 'canceled' && this.lease?.isolate.batch?.current === this.account
  }

  charged(): void {
    this.#onCharged(this)
  }

  /** What it has used so far. */
  get usage(): PackedUsage {
    this.account.countSockets()
    return packUsage({
      cpuUs: Math.round(this.account.cpuNs / 1000),
      initUs: Math.round(this.#initSoFarMs * 1000),
      initCpuUs: Math.round(this.initCpuNs / 1000),
      memoryPeakKb: this.lease?.isolate.memoryPeakKb ?? 0,
      egressBytesOut: this.account.egressBytesOut,
      egressBytesIn: this.account.egressBytesIn,
      sockets: this.account.sockets,
      socketUs: this.account.socketUs,
      attempts: this.attempts,
    })
  }

  /** Its isolate is loaded, or failed to: the wait for it is over. */
  endWait(): void {
    this.initMs = this.#initSoFarMs
    this.waitsSinceMs = undefined
  }

  get #initSoFarMs(): number {
    return this.waitsSinceMs === undefined ? this.initMs : this.initMs + performance.now() - this.waitsSinceMs
  }
}

/** How long no byte has moved in the streams of an invocation. */
export class IdleTime extends Limited {
  readonly invocation: ActiveInvocation

  constructor(invocation: ActiveInvocation) {
    super()
    this.invocation = invocation
  }
}

interface InvocationName {
  readonly number: number
  readonly id: string
  readonly revision: string
}
