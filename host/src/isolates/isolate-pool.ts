/** What the pool needs of a loaded isolate. */
export interface Poolable {
  readonly disposed: boolean
  /** Such as timers after an answer. */
  readonly hasBackgroundWork: boolean
  /** Most that it was seen to hold, in bytes. Absent or small: {@link MIN_ISOLATE_BYTES}. */
  readonly heapBytes?: number
  dispose(): void
}

/** What the end of a guest without anything of its own gives back, in bytes, as measured with Node 26. */
export const MIN_ISOLATE_BYTES = 1.25 * 1024 * 1024

/** The isolate of a revision, from before it is loaded until after it was retired. */
export class PooledIsolate<P extends Poolable> implements EvictionCandidate {
  readonly revision: string
  readonly loading: Promise<P>
  /** Absent while it loads. Callers who wait for it hold leases, so one without leases is loaded. */
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

/** The right to use a loaded isolate. Released exactly once; releasing again is harmless. */
export class IsolateLease<P extends Poolable> {
  readonly isolate: P
  readonly #pooled: PooledIsolate<P>
  readonly #onRelease: (pooled: PooledIsolate<P>) => void
  #isReleased = false

  constructor(pooled: PooledIsolate<P>, isolate: P, onRelease: (pooled: PooledIsolate<P>) => void) {
    this.isolate = isolate
    this.#pooled = pooled
    this.#onRelease = onRelease
  }

  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#onRelease(this.#pooled)
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

/** What {@link IsolatePool.relieve} has given up. */
export interface Eviction {
  readonly evicted: number
  /** What they held, in bytes; RSS may fall by less, and later. */
  readonly bytes: number
}

/**
 * The loaded isolates of a host: one for each revision, made on demand. They stay until room is needed; the least recently used
 * leaves first.
 */
export class IsolatePool<P extends Poolable> {
  readonly #options: IsolatePoolOptions<P>
  /** In order of use, the most recent last. */
  readonly #current = new Map<string, PooledIsolate<P>>()
  /** Retired, but still in use or with work in the background. */
  readonly #retired = new Set<PooledIsolate<P>>()
  readonly #pinned = new Set<string>()
  /** The one that was leased last. */
  #latest: PooledIsolate<P> | undefined
  readonly #onRelease = (pooled: PooledIsolate<P>): void => {
    pooled.leases--
    this.#settle(pooled)
  }

  constructor(options: IsolatePoolOptions<P>) {
    this.#options = options
  }

  /** Revisions that have an isolate or load one, without retired ones. */
  get size(): number {
    return this.#current.size
  }

  /** What {@link relieve} could give up at most: what the isolates hold that are neither in use nor pinned. */
  get evictableBytes(): number {
    let bytes = 0
    for (const pooled of this.#fromLeastUsed()) if (pooled.leases === 0 && !pooled.isPinned) bytes += pooled.heapBytes
    return bytes
  }

  /** Keeps a revision's isolate until the revision is retired, whatever the count and the pressure. It need not be loaded yet. */
  pin(revision: string): void {
    this.#pinned.add(revision)
    const pooled = this.#current.get(revision)
    if (pooled !== undefined) pooled.isPinned = true
  }

  /** Pinned revisions that neither have an isolate nor load one: not started yet, failed to load, or ended at a limit. */
  get coldPinned(): string[] {
    return [...this.#pinned].filter((revision) => {
      const pooled = this.#current.get(revision)
      return pooled === undefined || pooled.isolate?.disposed
    })
  }

  /** A lease on the isolate of a revision, at once if it is loaded. */
  acquireWarm(revision: string): IsolateLease<P> | undefined {
    const pooled = this.#current.get(revision)
    if (pooled?.isolate === undefined || pooled.isolate.disposed) return undefined
    return this.#lease(pooled, pooled.isolate)
  }

  /** A lease on the isolate of a revision, loading it if need be. Rejects with what `load` rejects with. */
  async acquire(revision: string): Promise<IsolateLease<P>> {
    const warm = this.acquireWarm(revision)
    if (warm !== undefined) return warm
    const current = this.#current.get(revision)
    const pooled = current === undefined || current.isolate?.disposed ? this.#open(revision) : current
    pooled.leases++
    try {
      return this.#lease(pooled, await pooled.loading)
    } finally {
      pooled.leases--
    }
  }

  /**
   * Takes a revision out: no new leases; its isolate is disposed when the last lease and its background work have ended. It is
   * pinned no more.
   */
  retire(revision: string): void {
    this.#pinned.delete(revision)
    const pooled = this.#current.get(revision)
    if (pooled === undefined) return
    pooled.isPinned = false
    this.#current.delete(revision)
    this.#retired.add(pooled)
    pooled.loading.then(
      () => this.#settle(pooled),
      () => this.#retired.delete(pooled),
    )
  }

  /**
   * Takes an isolate out while its revision stays: the next lease is on a new one. It is disposed when its last lease and its
   * background work have ended.
   * @returns false if it is not the isolate of its revision any more, or another one that was set aside has not ended: they
   * would become ever more
   */
  setAside(revision: string, isolate: P): boolean {
    const pooled = this.#current.get(revision)
    if (pooled?.isolate !== isolate) return false
    if ([...this.#retired].some((other) => other.revision === revision && other.isLoaded)) return false
    pooled.isPinned = false
    this.#current.delete(revision)
    this.#retired.add(pooled)
    this.#settle(pooled)
    return true
  }

  /**
   * Ends idle isolates that hold so many bytes together, or all that may leave: the least recently used first; then those with
   * background work, retired ones before others. Those in use or pinned stay.
   */
  relieve(bytes: number): Eviction {
    let evicted = 0
    let evictedBytes = 0
    for (const pooled of chooseEvicted(this.#fromLeastUsed(), { bytes })) {
      if (pooled.isLoaded) evicted++
      evictedBytes += pooled.heapBytes
      this.#end(pooled)
    }
    return { evicted, bytes: evictedBytes }
  }

  #open(revision: string): PooledIsolate<P> {
    const pooled = new PooledIsolate(revision, this.#options.load(revision), this.#pinned.has(revision))
    this.#current.delete(revision)
    this.#current.set(revision, pooled)
    this.#latest = pooled
    pooled.loading.then(
      (isolate) => {
        pooled.isolate = isolate
        this.#makeRoom()
      },
      () => {
        if (this.#isLive(pooled)) this.#current.delete(revision)
      },
    )
    return pooled
  }

  #lease(pooled: PooledIsolate<P>, isolate: P): IsolateLease<P> {
    pooled.leases++
    if (this.#latest !== pooled && this.#isLive(pooled)) {
      this.#current.delete(pooled.revision)
      this.#current.set(pooled.revision, pooled)
      this.#latest = pooled
    }
    return new IsolateLease(pooled, isolate, this.#onRelease)
  }

  /** After the last lease: ends the isolate if it was taken out meanwhile, else makes room if the pool is too full. */
  #settle(pooled: PooledIsolate<P>): void {
    if (pooled.leases > 0 || pooled.isolate === undefined) return
    if (pooled.isolate.disposed) return this.#end(pooled)
    if (this.#isLive(pooled)) return this.#makeRoom()
    if (!pooled.hasBackgroundWork) return this.#end(pooled)
    pooled.lingering ??= setTimeout(() => this.#end(pooled), this.#options.lingerMs).unref()
  }

  #makeRoom(): void {
    const isolates = this.#current.size - this.#options.maxIsolates
    // This runs at the end of every call.
    if (isolates <= 0) return
    for (const pooled of chooseEvicted(this.#current.values(), { isolates })) this.#end(pooled)
  }

  #end(pooled: PooledIsolate<P>): void {
    if (this.#isLive(pooled)) this.#current.delete(pooled.revision)
    this.#retired.delete(pooled)
    clearTimeout(pooled.lingering)
    pooled.isolate?.dispose()
  }

  /** Whether it is the one of its revision: not retired, nor replaced because its isolate was lost. */
  #isLive(pooled: PooledIsolate<P>): boolean {
    return this.#current.get(pooled.revision) === pooled
  }

  *#fromLeastUsed(): Iterable<PooledIsolate<P>> {
    yield* this.#retired
    yield* this.#current.values()
  }
}

export interface EvictionCandidate {
  readonly leases: number
  /** Kept warm: it never leaves to make room. */
  readonly isPinned: boolean
  readonly hasBackgroundWork: boolean
  /** What its end gives back, in bytes. */
  readonly heapBytes: number
}

/** What has to leave: at least so many isolates that hold at least so many bytes. Default of each: 0. */
export interface EvictionGoal {
  readonly isolates?: number
  readonly bytes?: number
}

/**
 * Which isolates leave to make room: the least recently used first; those with work in the background after all without. One that
 * is in use or pinned never leaves, so what leaves may be less than the goal. No more leave than the goal takes: the last one is
 * needed for it.
 * @param candidates from the least to the most recently used
 */
export function chooseEvicted<Candidate extends EvictionCandidate>(
  candidates: Iterable<Candidate>,
  { isolates = 0, bytes = 0 }: EvictionGoal,
): Candidate[] {
  const chosen: Candidate[] = []
  let chosenBytes = 0
  const isEnough = (): boolean => chosen.length >= isolates && chosenBytes >= bytes
  const choose = (candidate: Candidate): void => {
    chosen.push(candidate)
    chosenBytes += candidate.heapBytes
  }
  const withWork: Candidate[] = []
  if (isEnough()) return chosen
  for (const candidate of candidates) {
    if (candidate.leases > 0 || candidate.isPinned) continue
    if (candidate.hasBackgroundWork) withWork.push(candidate)
    else choose(candidate)
    if (isEnough()) return chosen
  }
  for (const candidate of withWork) {
    if (isEnough()) break
    choose(candidate)
  }
  return chosen
}
