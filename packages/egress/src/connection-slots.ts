import { failure } from './failure.ts'
import { SharedPool, type Holder } from './shared-pool.ts'

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
interface FunctionQueue {
  readonly byOrigin: Map<string, Set<Waiter>>
  size: number
}

/**
 * Decides which fetch may have a connection, and which waits. Each function has its queue, and the queues are served round robin:
 * a flood of one never shuts out another. Fetches wait rather than being refused: code that fetches a thousand addresses at once
 * is no misuse. The timeout of the fetch bounds the wait.
 */
export class ConnectionSlots {
  readonly #limits: SlotLimits
  readonly #all: SharedPool
  readonly #origins = new Map<string, SharedPool>()
  /** The function that is served next comes first. */
  readonly #queues = new Map<string, FunctionQueue>()
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
    const isFirst = this.#queues.get(claim.functionName)?.byOrigin.has(claim.origin) !== true
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
    let failures = 0
    while (failures < this.#queues.size) {
      const [next] = this.#queues
      if (next === undefined) return
      const [functionName, queue] = next
      this.#queues.delete(functionName)
      this.#queues.set(functionName, queue)
      if (this.#serveOne(queue)) failures = 0
      else failures += 1
    }
  }

  #serveOne(queue: FunctionQueue): boolean {
    for (const waiters of queue.byOrigin.values()) {
      const [waiter] = waiters
      if (waiter === undefined || !this.#all.permits(waiter.claim, 1)) return false
      const slot = this.#tryTake(waiter.claim)
      if (slot === undefined) continue
      this.#dequeue(waiter)
      waiter.grant(slot)
      return true
    }
    return false
  }

  #enqueue(waiter: Waiter): boolean {
    const { functionName, origin } = waiter.claim
    let queue = this.#queues.get(functionName)
    if ((queue?.size ?? 0) >= this.#limits.maxWaitingPerFunction) return false
    if (queue === undefined) this.#queues.set(functionName, (queue = { byOrigin: new Map(), size: 0 }))
    const waiters = queue.byOrigin.get(origin)
    if (waiters === undefined) queue.byOrigin.set(origin, new Set([waiter]))
    else waiters.add(waiter)
    queue.size += 1
    this.#waiting += 1
    return true
  }

  #dequeue(waiter: Waiter): void {
    const { functionName, origin } = waiter.claim
    const queue = this.#queues.get(functionName)
    const waiters = queue?.byOrigin.get(origin)
    if (queue === undefined || waiters?.delete(waiter) !== true) return
    queue.size -= 1
    this.#waiting -= 1
    if (waiters.size === 0) queue.byOrigin.delete(origin)
    if (queue.size === 0) this.#queues.delete(functionName)
  }
}
