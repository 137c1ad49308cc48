import type { Holder } from '@carpool/core'
import type { MemoryLease } from './response-body.ts'
import type { StreamMemory } from './stream-memory.ts'

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
  readonly #memory: StreamMemory
  readonly #byInvocation = new Map<string, number>()
  #count = 0

  constructor({ maxFetchesPerInvocation }: { readonly maxFetchesPerInvocation: number }, memory: StreamMemory) {
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
      shrink: (bytes) => {
        if (!isOpen) return
        heldBytes -= bytes
        this.#memory.give(holder, bytes)
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
