import { FairOrder, Flow, type Holder, type SharedPool } from '@carpool/core'

/** What a stream waits for. */
export interface MemoryWaiter {
  readonly bytes: number
  /** So much may be had now. It is not taken yet. */
  ready(): void
}

class WaitingStreams extends Flow {
  readonly waiters = new Set<MemoryWaiter>()
}

/**
 * The memory of what fetches and sockets hold, out of one pool. A stream that finds none waits, and its peer with it: it is
 * served by turns between owners and their functions when some is given back.
 */
export class StreamMemory {
  readonly #pool: SharedPool
  readonly #order = new FairOrder((holder) => new WaitingStreams(holder))
  readonly #isServable = (flow: WaitingStreams): boolean => {
    const [first] = flow.waiters
    return this.#pool.permits(flow, first!.bytes)
  }

  constructor(pool: SharedPool) {
    this.#pool = pool
  }

  get used(): number {
    return this.#pool.used
  }

  tryTake(holder: Holder, bytes: number): boolean {
    return this.#pool.tryTake(holder, bytes)
  }

  give(holder: Holder, bytes: number): void {
    if (bytes === 0) return
    this.#pool.give(holder, bytes)
    while (this.#order.waiting > 0) {
      const flow = this.#order.first(this.#isServable)
      if (flow === undefined) return
      const [first] = flow.waiters
      this.#order.charge(flow, first!.bytes)
      this.leave(flow, first!)
      first!.ready()
    }
  }

  /** It is told once, when there may be memory. */
  wait(holder: Holder, waiter: MemoryWaiter): void {
    this.#order.wait(holder).waiters.add(waiter)
  }

  /** Harmless if it does not wait. */
  leave(holder: Holder, waiter: MemoryWaiter): void {
    const flow = this.#order.find(holder)
    if (flow?.waiters.delete(waiter) !== true || flow.waiters.size > 0) return
    this.#order.rest(flow)
    if (this.#order.waiting === 0) this.#order.reset()
  }
}
