import type { EvictionCandidate } from './choose-evicted.ts'

/** What the pool needs of a loaded isolate. */
export interface Pooled {
  readonly disposed: boolean
  /** Whether work goes on in it that nobody waits for, such as timers after an answer. */
  readonly hasBackgroundWork: boolean
  /** What it was last seen to hold, in bytes. Absent or small: {@link MIN_ISOLATE_BYTES}. */
  readonly heapBytes?: number
  dispose(): void
}

/** What the end of a guest without anything of its own gives back, in bytes, as measured with Node 26. */
export const MIN_ISOLATE_BYTES = 1.25 * 1024 * 1024

/** The place of a revision's isolate in the pool, from before it is loaded until after it was retired. */
export class IsolateSlot<P extends Pooled> implements EvictionCandidate {
  readonly revision: string
  readonly loading: Promise<P>
  /** Absent while it loads. Callers who wait for it hold leases, so a slot without leases has one. */
  isolate: P | undefined
  leases = 0
  isPinned: boolean
  /** Runs while it is retired and goes on with work in the background; then it ends. */
  lingering: NodeJS.Timeout | undefined

  constructor(revision: string, loading: Promise<P>, isPinned: boolean) {
    this.revision = revision
    this.loading = loading
    this.isPinned = isPinned
  }

  /** Whether there is an isolate that has not ended. */
  get isLoaded(): boolean {
    return this.isolate !== undefined && !this.isolate.disposed
  }

  get hasBackgroundWork(): boolean {
    return this.isolate?.hasBackgroundWork ?? false
  }

  get heapBytes(): number {
    return this.isLoaded ? Math.max(this.isolate?.heapBytes ?? 0, MIN_ISOLATE_BYTES) : 0
  }
}
