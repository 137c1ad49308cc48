import { chooseEvicted } from './choose-evicted.ts'
import { IsolateSlot, type Pooled } from './isolate-slot.ts'

/** The right to use a loaded isolate. Released exactly once; releasing again is harmless. */
export interface IsolateLease<P> {
  readonly isolate: P
  release(): void
}

class Lease<P extends Pooled> implements IsolateLease<P> {
  readonly isolate: P
  readonly #slot: IsolateSlot<P>
  readonly #onRelease: (slot: IsolateSlot<P>) => void
  #isReleased = false

  constructor(slot: IsolateSlot<P>, isolate: P, onRelease: (slot: IsolateSlot<P>) => void) {
    this.isolate = isolate
    this.#slot = slot
    this.#onRelease = onRelease
  }

  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#onRelease(this.#slot)
  }
}

export interface IsolatePoolOptions<P> {
  /** Makes and loads the isolate of a revision. */
  readonly load: (revision: string) => Promise<P>
  /** Most isolates, retired ones aside. Those in use or pinned count but never leave, so there may be more. */
  readonly maxIsolates: number
  /** How long a retired isolate may go on with background work, in ms. */
  readonly lingerMs: number
}

/** The loaded isolates of a pool at one moment, retired ones that have not ended among them. */
export interface PoolCounts {
  readonly isolates: number
  /** Of them, how many somebody uses. */
  readonly leased: number
  /** Of them, how many nobody uses: the others. */
  readonly idle: number
  /** What {@link IsolatePool.relieve} could give up at most: what the idle ones hold that are not pinned, in bytes. */
  readonly evictableBytes: number
}

/** What was given up. */
export interface Eviction {
  readonly evicted: number
  /** What they held, in bytes; RSS may fall by less, and later. */
  readonly bytes: number
}

/** The loaded isolates of a host: one for each revision, made on demand. They stay until room is needed; the least recently used leaves first. */
export class IsolatePool<P extends Pooled> {
  readonly #options: IsolatePoolOptions<P>
  /** In order of use, the most recent last. */
  readonly #slots = new Map<string, IsolateSlot<P>>()
  /** Retired, but still in use or with work in the background. */
  readonly #retired = new Set<IsolateSlot<P>>()
  readonly #pinned = new Set<string>()
  /** The one that was leased last. */
  #latest: IsolateSlot<P> | undefined
  readonly #onRelease = (slot: IsolateSlot<P>): void => {
    slot.leases--
    this.#settle(slot)
  }

  constructor(options: IsolatePoolOptions<P>) {
    this.#options = options
  }

  /** Revisions that have an isolate or load one, without retired ones. */
  get size(): number {
    return this.#slots.size
  }

  /** Loaded isolates that nobody uses. */
  get idle(): number {
    return this.counts().idle
  }

  /** Looks at every isolate: for a sample now and then, not for each call. */
  counts(): PoolCounts {
    let isolates = 0
    let leased = 0
    let evictableBytes = 0
    for (const slot of this.#fromLeastUsed()) {
      if (!slot.isLoaded) continue
      isolates++
      if (slot.leases > 0) leased++
      else if (!slot.isPinned) evictableBytes += slot.heapBytes
    }
    return { isolates, leased, idle: isolates - leased, evictableBytes }
  }

  /** Keeps a revision's isolate until the revision is retired, whatever the count and the pressure. It need not be loaded yet. */
  pin(revision: string): void {
    this.#pinned.add(revision)
    const slot = this.#slots.get(revision)
    if (slot !== undefined) slot.isPinned = true
  }

  /** Pinned revisions that neither have an isolate nor load one: not started yet, failed to load, or ended at a limit. */
  get coldPinned(): string[] {
    return [...this.#pinned].filter((revision) => {
      const slot = this.#slots.get(revision)
      return slot === undefined || slot.isolate?.disposed
    })
  }

  /** A lease on the isolate of a revision, at once if it is loaded. */
  acquireWarm(revision: string): IsolateLease<P> | undefined {
    const slot = this.#slots.get(revision)
    if (slot?.isolate === undefined || slot.isolate.disposed) return undefined
    return this.#lease(slot, slot.isolate)
  }

  /** A lease on the isolate of a revision, loading it if need be. Rejects with what `load` rejects with. */
  async acquire(revision: string): Promise<IsolateLease<P>> {
    const warm = this.acquireWarm(revision)
    if (warm !== undefined) return warm
    const current = this.#slots.get(revision)
    const slot = current === undefined || current.isolate?.disposed ? this.#open(revision) : current
    slot.leases++
    try {
      return this.#lease(slot, await slot.loading)
    } finally {
      slot.leases--
    }
  }

  /** Takes a revision out: no new leases; its isolate is disposed when the last lease and its background work have ended. It is pinned no more. */
  retire(revision: string): void {
    this.#pinned.delete(revision)
    const slot = this.#slots.get(revision)
    if (slot === undefined) return
    slot.isPinned = false
    this.#slots.delete(revision)
    this.#retired.add(slot)
    slot.loading.then(
      () => this.#settle(slot),
      () => this.#retired.delete(slot),
    )
  }

  /**
   * Takes an isolate out while its revision stays: the next lease is on a new one. It is disposed when its last lease and its background work have ended.
   * @returns false if it is not the isolate of its revision any more, or another one that was set aside has not ended: they would become ever more
   */
  setAside(revision: string, isolate: P): boolean {
    const slot = this.#slots.get(revision)
    if (slot?.isolate !== isolate) return false
    if ([...this.#retired].some((other) => other.revision === revision && other.isLoaded)) return false
    slot.isPinned = false
    this.#slots.delete(revision)
    this.#retired.add(slot)
    this.#settle(slot)
    return true
  }

  /**
   * Ends idle isolates that hold so many bytes together, or all that may leave: the least recently used first; then those with background
   * work, retired ones before others. Those in use or pinned stay.
   */
  relieve(bytes: number): Eviction {
    let evicted = 0
    let evictedBytes = 0
    for (const slot of chooseEvicted(this.#fromLeastUsed(), { bytes })) {
      if (slot.isLoaded) evicted++
      evictedBytes += slot.heapBytes
      this.#end(slot)
    }
    return { evicted, bytes: evictedBytes }
  }

  #open(revision: string): IsolateSlot<P> {
    const slot = new IsolateSlot(revision, this.#options.load(revision), this.#pinned.has(revision))
    this.#slots.delete(revision)
    this.#slots.set(revision, slot)
    this.#latest = slot
    slot.loading.then(
      (isolate) => {
        slot.isolate = isolate
        this.#makeRoom()
      },
      () => {
        if (this.#isLive(slot)) this.#slots.delete(revision)
      },
    )
    return slot
  }

  #lease(slot: IsolateSlot<P>, isolate: P): IsolateLease<P> {
    slot.leases++
    if (this.#latest !== slot && this.#isLive(slot)) {
      this.#slots.delete(slot.revision)
      this.#slots.set(slot.revision, slot)
      this.#latest = slot
    }
    return new Lease(slot, isolate, this.#onRelease)
  }

  /** After a slot's last lease: end its isolate if the slot was taken out meanwhile, else see whether the pool is too full. */
  #settle(slot: IsolateSlot<P>): void {
    if (slot.leases > 0 || slot.isolate === undefined) return
    if (slot.isolate.disposed) return this.#end(slot)
    if (this.#isLive(slot)) return this.#makeRoom()
    if (!slot.hasBackgroundWork) return this.#end(slot)
    slot.lingering ??= setTimeout(() => this.#end(slot), this.#options.lingerMs).unref()
  }

  #makeRoom(): void {
    const isolates = this.#slots.size - this.#options.maxIsolates
    // This runs at the end of every call.
    if (isolates <= 0) return
    for (const slot of chooseEvicted(this.#slots.values(), { isolates })) this.#end(slot)
  }

  #end(slot: IsolateSlot<P>): void {
    if (this.#isLive(slot)) this.#slots.delete(slot.revision)
    this.#retired.delete(slot)
    clearTimeout(slot.lingering)
    slot.isolate?.dispose()
  }

  /** Whether the slot is the one of its revision: not retired, nor replaced because its isolate was lost. */
  #isLive(slot: IsolateSlot<P>): boolean {
    return this.#slots.get(slot.revision) === slot
  }

  *#fromLeastUsed(): Iterable<IsolateSlot<P>> {
    yield* this.#retired
    yield* this.#slots.values()
  }
}
