import { FairOrder, Flow, SharedPool, type Holder } from '@carpool/core'
import { failure } from './failure.ts'

export interface Claim extends Holder {
  readonly origin: string
}

/** The right to one connection. Released once; releasing again is harmless. */
export interface ConnectionSlot {
  release(): void
}

export interface SlotLimits {
  readonly maxConnections: number
  readonly maxConnectionsPerOrigin: number
  readonly maxWaitingPerFunction: number
}

interface Waiter {
  readonly claim: Claim
  readonly grant: (slot: ConnectionSlot) => void
}

/** The waiting fetches of one function, by origin, so that one slow origin does not hold up the others. */
class WaitingFetches extends Flow {
  readonly byOrigin = new Map<string, Set<Waiter>>()
  size = 0
}

/**
 * Decides which fetch may have a connection, and which waits. Each function has its queue, and the queues are served round robin,
 * between owners and then between the functions of each: a flood of one never shuts out another. Fetches wait rather than being
 * refused: code that fetches a thousand addresses at once is no misuse. The timeout of the fetch bounds the wait.
 */
export class ConnectionSlots {
  readonly #limits: SlotLimits
  readonly #all: SharedPool
  readonly #origins = new Map<string, SharedPool>()
  readonly #order = new FairOrder((holder) => new WaitingFetches(holder))
  readonly #isServable = (flow: WaitingFetches): boolean => this.#nextOf(flow) !== undefined
  #waiting = 0

  constructor(limits: SlotLimits) {
    this.#limits = limits
    this.#all = new SharedPool(limits.maxConnections)
  }

  /** Slots that are taken. */
  get open(): number {
    return this.#all.used
  }

  get waiting(): number {
    return this.#waiting
  }

  /**
   * Resolves when there is a slot for the claim.
   * @throws failure `waiting-full` if too many fetches of the function wait, or the signal's reason
   */
  async take(claim: Claim, signal: AbortSignal): Promise<ConnectionSlot> {
    signal.throwIfAborted()
    const isFirst = this.#order.find(claim)?.byOrigin.has(claim.origin) !== true
    const slot = isFirst ? this.#tryTake(claim) : undefined
    return slot ?? this.#wait(claim, signal)
  }

  #wait(claim: Claim, signal: AbortSignal): Promise<ConnectionSlot> {
    const { promise, resolve, reject } = Promise.withResolvers<ConnectionSlot>()
    const waiter = { claim, grant: resolve }
    if (!this.#enqueue(waiter)) throw failure('waiting-full')
    const leave = (): void => {
      this.#dequeue(waiter)
      reject(signal.reason)
    }
    signal.addEventListener('abort', leave, { once: true })
    return promise.finally(() => signal.removeEventListener('abort', leave))
  }

  #tryTake(claim: Claim): ConnectionSlot | undefined {
    if (!this.#all.tryTake(claim, 1)) return undefined
    const origin = this.#originPool(claim.origin)
    if (!origin.tryTake(claim, 1)) {
      this.#all.give(claim, 1)
      return undefined
    }
    let isTaken = true
    const release = (): void => {
      if (!isTaken) return
      isTaken = false
      this.#all.give(claim, 1)
      origin.give(claim, 1)
      if (origin.used === 0) this.#origins.delete(claim.origin)
      this.#serve()
    }
    return { release }
  }

  #originPool(origin: string): SharedPool {
    let pool = this.#origins.get(origin)
    if (pool === undefined) this.#origins.set(origin, (pool = new SharedPool(this.#limits.maxConnectionsPerOrigin)))
    return pool
  }

  /** Called when a slot is free: serves the functions in turn until none of them can go on. */
  #serve(): void {
    if (this.#waiting === 0) return
    for (let flow = this.#order.first(this.#isServable); flow !== undefined; flow = this.#order.first(this.#isServable)) {
      const waiter = this.#nextOf(flow)
      const slot = waiter && this.#tryTake(waiter.claim)
      if (slot === undefined) return
      this.#order.charge(flow, 1)
      this.#dequeue(waiter!)
      waiter!.grant(slot)
    }
  }

  /** Of the fetches that wait first for their origins, the one that may have a slot; undefined if none may. */
  #nextOf({ byOrigin }: WaitingFetches): Waiter | undefined {
    for (const [origin, waiters] of byOrigin) {
      const [waiter] = waiters
      if (waiter === undefined || !this.#all.permits(waiter.claim, 1)) return undefined
      if (this.#origins.get(origin)?.permits(waiter.claim, 1) !== false) return waiter
    }
    return undefined
  }

  #enqueue(waiter: Waiter): boolean {
    const { claim } = waiter
    if ((this.#order.find(claim)?.size ?? 0) >= this.#limits.maxWaitingPerFunction) return false
    const flow = this.#order.wait(claim)
    const waiters = flow.byOrigin.get(claim.origin)
    if (waiters === undefined) flow.byOrigin.set(claim.origin, new Set([waiter]))
    else waiters.add(waiter)
    flow.size += 1
    this.#waiting += 1
    return true
  }

  #dequeue(waiter: Waiter): void {
    const { claim } = waiter
    const flow = this.#order.find(claim)
    const waiters = flow?.byOrigin.get(claim.origin)
    if (flow === undefined || waiters?.delete(waiter) !== true) return
    flow.size -= 1
    this.#waiting -= 1
    if (waiters.size === 0) flow.byOrigin.delete(claim.origin)
    if (flow.size === 0) this.#order.rest(flow)
    if (this.#waiting === 0) this.#order.reset()
  }
}
