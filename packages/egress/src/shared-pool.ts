import type { MemoryLease } from './response-body.ts'

/** Who holds something of a pool. */
export interface Holder {
  readonly functionName: string
  readonly owner: string
}

/** Of what is free, how much a function and an owner may hold at most. */
const FUNCTION_PORTION = 1 / 2
const OWNER_PORTION = 1

/**
 * Shares out a resource so that a flood of one holder leaves room for others: a function may hold at most half as much as is
 * free, an owner at most as much as is free. Alone, a function gets a third and an owner half of the pool. A holder of nothing
 * gets something as long as there is anything. These are the dynamic thresholds of Choudhury and Hahne, "Dynamic queue length
 * thresholds for shared-memory packet switches" (1998).
 */
export class SharedPool {
  readonly total: number
  readonly #held = { functions: new Map<string, number>(), owners: new Map<string, number>() }
  #used = 0

  constructor(total: number) {
    this.total = total
  }

  get used(): number {
    return this.#used
  }

  /** Whether a holder may have so much more. */
  permits({ functionName, owner }: Holder, amount: number): boolean {
    const free = this.total - this.#used
    const { functions, owners } = this.#held
    return (
      mayHold(functions.get(functionName) ?? 0, amount, free, FUNCTION_PORTION) &&
      mayHold(owners.get(owner) ?? 0, amount, free, OWNER_PORTION)
    )
  }

  /** Takes `amount` for a holder, or nothing. */
  tryTake(holder: Holder, amount: number): boolean {
    if (!this.permits(holder, amount)) return false
    this.#add(holder, amount)
    return true
  }

  give(holder: Holder, amount: number): void {
    this.#add(holder, -amount)
  }

  #add({ functionName, owner }: Holder, amount: number): void {
    this.#used += amount
    change(this.#held.functions, functionName, amount)
    change(this.#held.owners, owner, amount)
  }
}

function mayHold(held: number, amount: number, free: number, portion: number): boolean {
  // Else nothing could take the last of an almost empty pool.
  if (held === 0) return amount <= free
  return held + amount <= free * portion
}

function change(amounts: Map<string, number>, key: string, by: number): void {
  const amount = (amounts.get(key) ?? 0) + by
  if (amount === 0) amounts.delete(key)
  else amounts.set(key, amount)
}

/** What one fetch holds while it is open. */
export interface FetchLease extends MemoryLease {
  /** Gives all of it back; once more is harmless. */
  release(): void
}

interface Fetching extends Holder {
  /** Absent: background work, which counts as one invocation of its function. */
  readonly invocationId?: string
}

/** Counts the open fetches of each invocation, and the memory of each function's. */
export class OpenFetches {
  readonly #maxPerInvocation: number
  readonly #memory: SharedPool
  readonly #byInvocation = new Map<string, number>()
  #count = 0

  constructor({ maxFetchesPerInvocation }: { readonly maxFetchesPerInvocation: number }, memory: SharedPool) {
    this.#maxPerInvocation = maxFetchesPerInvocation
    this.#memory = memory
  }

  get count(): number {
    return this.#count
  }

  /** Undefined: the invocation has as many open as it may. */
  begin({ functionName, owner, invocationId }: Fetching): FetchLease | undefined {
    const key = `${functionName}\n${invocationId ?? ''}`
    const before = this.#byInvocation.get(key) ?? 0
    if (before >= this.#maxPerInvocation) return undefined
    this.#byInvocation.set(key, before + 1)
    this.#count += 1
    const holder = { functionName, owner }
    let heldBytes = 0
    let isOpen = true
    return {
      grow: (bytes) => {
        // A connection that is about to end may still deliver something.
        if (!isOpen || !this.#memory.tryTake(holder, bytes)) return false
        heldBytes += bytes
        return true
      },
      release: () => {
        if (!isOpen) return
        isOpen = false
        this.#memory.give(holder, heldBytes)
        this.#count -= 1
        const left = (this.#byInvocation.get(key) ?? 1) - 1
        if (left === 0) this.#byInvocation.delete(key)
        else this.#byInvocation.set(key, left)
      },
    }
  }
}
