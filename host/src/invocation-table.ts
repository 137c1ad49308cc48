import type { FunctionLimits, StartKind } from '@carpool/core'
import type { IsolateLease } from '@carpool/isolate-pool'
import type { Guest } from './guest.ts'

/** An invocation in this host, from its arrival until its end is told. */
export interface ActiveInvocation {
  readonly number: number
  readonly id: string
  readonly limits: FunctionLimits
  readonly wallLimit: NodeJS.Timeout
  start: StartKind
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

  add(invocation: ActiveInvocation): void {
    this.#active.set(invocation.number, invocation)
  }

  /** The invocation has its isolate now. */
  bind(invocation: ActiveInvocation, lease: IsolateLease<Guest>): void {
    invocation.lease = lease
    const others = this.#byGuest.get(lease.isolate)
    if (others === undefined) this.#byGuest.set(lease.isolate, new Set([invocation]))
    else others.add(invocation)
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

  /** Those whose isolate is gone. */
  orphans(): ActiveInvocation[] {
    return [...this.#byGuest].flatMap(([guest, invocations]) => (guest.disposed ? [...invocations] : []))
  }

  /** Ends an invocation: true for the first caller, who then tells its outcome; false if it had ended. */
  end(invocation: ActiveInvocation): boolean {
    if (!this.#active.delete(invocation.number)) return false
    clearTimeout(invocation.wallLimit)
    const { lease } = invocation
    if (lease === undefined) return true
    const others = this.#byGuest.get(lease.isolate)
    others?.delete(invocation)
    if (others?.size === 0) this.#byGuest.delete(lease.isolate)
    lease.release()
    return true
  }
}
