import { NumberedTable, type FailedOutcome, type FunctionLimits } from '@carpool/core'
import type { IsolateLease } from '../isolates/isolate-pool.ts'
import { Account } from '../accounting/account.ts'
import type { BodyKind } from '@carpool/runtime/bridge'
import type { HostStart } from '@carpool/wire'
import type { Charged } from '../scheduler/entry-queue.ts'
import type { Guest } from '../isolates/guest.ts'
import { Limited, WallLimits } from './wall-limits.ts'

/** The request of an invocation as it enters a guest. */
export interface Call {
  readonly head: string
  readonly kind: BodyKind
  readonly body: string
}

/** What is told of an invocation that ended with its answer. */
export interface Answer {
  readonly head: string
  readonly body: Uint8Array
}

/** What is told of one that did not. */
export interface Failure {
  readonly outcome: FailedOutcome
  readonly detail: string
  readonly stack: string | undefined
}

/** An invocation in this host, from its arrival until its end is told. */
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

  charged(): void {
    this.#onCharged(this)
  }
}

interface InvocationName {
  readonly number: number
  readonly id: string
  readonly revision: string
}

/** The invocations in this host, by their number on the connection. */
export class InvocationTable {
  readonly #active = new NumberedTable<ActiveInvocation>()
  readonly #wallLimits: WallLimits<ActiveInvocation>

  /** @param onTimeOut called for those that have not ended by their wall limit */
  constructor(onTimeOut: (invocation: ActiveInvocation) => void) {
    this.#wallLimits = new WallLimits(onTimeOut)
  }

  get size(): number {
    return this.#active.size
  }

  values(): Iterable<ActiveInvocation> {
    return this.#active.values()
  }

  add(invocation: ActiveInvocation): void {
    this.#active.set(invocation.number, invocation)
    this.#wallLimits.add(invocation, invocation.limits.wallMs)
  }

  has(invocation: ActiveInvocation): boolean {
    return this.#active.get(invocation.number) === invocation
  }

  /** The isolate is gone, and the invocation is to be begun again. */
  unbind(invocation: ActiveInvocation): void {
    const { lease } = invocation
    invocation.lease = undefined
    lease?.release()
  }

  get(number: number): ActiveInvocation | undefined {
    return this.#active.get(number)
  }

  /** The invocation of that number if it runs in that guest; a guest cannot name another's. */
  of(guest: Guest, number: number): ActiveInvocation | undefined {
    const invocation = this.#active.get(number)
    return invocation?.lease?.isolate === guest ? invocation : undefined
  }

  /** Those that run in that guest. Looks at all: it is asked when an isolate is lost, or somebody has passed a limit. */
  in(guest: Guest): ActiveInvocation[] {
    return [...this.#active.values()].filter(({ lease }) => lease?.isolate === guest)
  }

  /**
   * Ends an invocation: true for the first caller, who then tells its outcome and gives back its lease; false if it had ended.
   */
  end(invocation: ActiveInvocation): boolean {
    if (!this.has(invocation)) return false
    this.#active.delete(invocation.number)
    this.#wallLimits.remove(invocation)
    return true
  }
}
