import type { FunctionLimits } from '@carpool/core'
import type { IsolateLease } from '@carpool/isolate-pool'
import type { Account } from '@carpool/metering'
import type { BodyKind } from '@carpool/runtime/bridge'
import type { HostStart } from '@carpool/wire'
import type { Guest } from './guest.ts'

/** The request of an invocation as it enters a guest. */
export interface Call {
  readonly head: string
  readonly kind: BodyKind
  readonly body: string
}

/** An invocation in this host, from its arrival until its end is told. */
export interface ActiveInvocation {
  readonly number: number
  readonly id: string
  readonly revision: string
  readonly limits: FunctionLimits
  readonly account: Account
  readonly wallLimit: NodeJS.Timeout
  start: HostStart
  /** How long it waited for isolates, in ms, without the wait that is under way. */
  initMs: number
  /** Since when it waits for an isolate, in ms. */
  waitsSinceMs: number | undefined
  /** CPU time of starts that it caused, in ns. */
  initCpuNs: number
  /** Isolates in which it was begun. */
  attempts: number
  /** Kept as long as it could be begun again elsewhere without anybody noticing. */
  call: Call | undefined
  /** Absent while the isolate loads. */
  lease: IsolateLease<Guest> | undefined
}

/** The invocations in this host, by their number on the connection and by the guest they run in. */
export class InvocationTable {
  readonly #active = new Map<number, ActiveInvocation>()
  readonly #byGuest = new Map<Guest, Set<ActiveInvocation>>()

  get size(): number {
    return this.#active.size
  }

  values(): Iterable<ActiveInvocation> {
    return this.#active.values()
  }

  add(invocation: ActiveInvocation): void {
    this.#active.set(invocation.number, invocation)
  }

  has(invocation: ActiveInvocation): boolean {
    return this.#active.get(invocation.number) === invocation
  }

  /** The invocation has its isolate now. */
  bind(invocation: ActiveInvocation, lease: IsolateLease<Guest>): void {
    invocation.lease = lease
    const others = this.#byGuest.get(lease.isolate)
    if (others === undefined) this.#byGuest.set(lease.isolate, new Set([invocation]))
    else others.add(invocation)
  }

  /** The isolate is gone, and the invocation is to be begun again. */
  unbind(invocation: ActiveInvocation): void {
    const { lease } = invocation
    if (lease === undefined) return
    invocation.lease = undefined
    this.#forget(invocation, lease.isolate)
    lease.release()
  }

  get(number: number): ActiveInvocation | undefined {
    return this.#active.get(number)
  }

  /** The invocation of that number if it runs in that guest; a guest cannot name another's. */
  of(guest: Guest, number: number): ActiveInvocation | undefined {
    const invocation = this.#active.get(number)
    return invocation?.lease?.isolate === guest ? invocation : undefined
  }

  in(guest: Guest): ActiveInvocation[] {
    return [...(this.#byGuest.get(guest) ?? [])]
  }

  /**
   * Ends an invocation: true for the first caller, who then tells its outcome and gives back its lease; false if it had ended.
   */
  end(invocation: ActiveInvocation): boolean {
    if (!this.#active.delete(invocation.number)) return false
    clearTimeout(invocation.wallLimit)
    if (invocation.lease !== undefined) this.#forget(invocation, invocation.lease.isolate)
    return true
  }

  #forget(invocation: ActiveInvocation, guest: Guest): void {
    const others = this.#byGuest.get(guest)
    others?.delete(invocation)
    if (others?.size === 0) this.#byGuest.delete(guest)
  }
}
