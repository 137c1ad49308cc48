import { chooseEvicted, type EvictionCandidate } from './choose-evicted.ts'

/** What the pool needs of a loaded isolate. */
export interface Pooled {
  readonly disposed: boolean
  /** Whether work goes on in it that nobody waits for, such as timers after an answer. */
  readonly hasBackgroundWork: boolean
  dispose(): void
}

/** The right to use a loaded isolate. Released exactly once; releasing again is harmless. */
export interface IsolateLease<P> {
  readonly isolate: P
  /** Whether the isolate was made for this lease. */
  readonly cold: boolean
  release(): void
}

interface Slot<P> extends EvictionCandidate {
  leases: number
  loading: Promise<P>
  isolate: P | undefined
}

export interface IsolatePoolOptions<P> {
  /** Makes and loads the isolate of a revision. */
  readonly load: (revision: string) => Promise<P>
  readonly maxIsolates: number
  /** How long a retired isolate may go on with background work, in ms. */
  readonly lingerMs: number
}

/** The loaded isolates of a host: one for each revision, made on demand, the least recently used leaving first. */
export class IsolatePool<P extends Pooled> {
  readonly #options: IsolatePoolOptions<P>
  /** In order of use, the most recent last. */
  readonly #slots = new Map<string, Slot<P>>()

  constructor(options: IsolatePoolOptions<P>) {
    this.#options = options
  }

  get size(): number {
    return this.#slots.size
  }

  /** The loaded isolates. */
  *isolates(): Generator<P> {
    for (const { isolate } of this.#slots.values()) if (isolate !== undefined) yield isolate
  }

  /** A lease on the isolate of a revision, at once if it is loaded. */
  acquireWarm(revision: string): IsolateLease<P> | undefined {
    const slot = this.#slots.get(revision)
    if (slot?.isolate === undefined || slot.isolate.disposed) return undefined
    return this.#lease(slot, slot.isolate, false)
  }

  /** A lease on the isolate of a revision, loading it if need be. Rejects with what `load` rejects with. */
  async acquire(revision: string): Promise<IsolateLease<P>> {
    const warm = this.acquireWarm(revision)
    if (warm !== undefined) return warm
    const current = this.#slots.get(revision)
    const slot = current === undefined || current.isolate?.disposed ? this.#open(revision) : current
    slot.leases++
    try {
      return this.#lease(slot, await slot.loading, true)
    } finally {
      slot.leases--
    }
  }

  /** Takes a revision out: no new leases; its isolate is disposed when the last lease and its background work have ended. */
  retire(revision: string): void {
    const slot = this.#slots.get(revision)
    if (slot === undefined) return
    this.#slots.delete(revision)
    void slot.loading.then(() => this.#settle(slot)).catch(() => {})
  }

  close(): void {
    for (const slot of this.#slots.values()) void slot.loading.then((isolate) => isolate.dispose()).catch(() => {})
    this.#slots.clear()
  }

  #open(revision: string): Slot<P> {
    const slot: Slot<P> = { key: revision, leases: 0, isolate: undefined, loading: this.#options.load(revision) }
    this.#slots.delete(revision)
    this.#slots.set(revision, slot)
    slot.loading.then(
      (isolate) => {
        slot.isolate = isolate
        this.#evict()
      },
      () => {
        if (this.#slots.get(revision) === slot) this.#slots.delete(revision)
      },
    )
    return slot
  }

  #lease(slot: Slot<P>, isolate: P, cold: boolean): IsolateLease<P> {
    slot.leases++
    if (this.#slots.get(slot.key) === slot) {
      this.#slots.delete(slot.key)
      this.#slots.set(slot.key, slot)
    }
    let released = false
    const release = (): void => {
      if (released) return
      released = true
      slot.leases--
      this.#settle(slot)
    }
    return { isolate, cold, release }
  }

  /** After a slot's last lease: dispose its isolate if the slot was taken out meanwhile, else see whether the pool is too full. */
  #settle(slot: Slot<P>): void {
    if (slot.leases > 0 || slot.isolate === undefined) return
    if (this.#slots.get(slot.key) === slot) return this.#evict()
    const { isolate } = slot
    if (!isolate.hasBackgroundWork) return isolate.dispose()
    setTimeout(() => isolate.dispose(), this.#options.lingerMs).unref()
  }

  #evict(): void {
    const key = chooseEvicted(this.#slots.values(), this.#slots.size, this.#options.maxIsolates)
    const slot = key === undefined ? undefined : this.#slots.get(key)
    if (slot === undefined) return
    this.#slots.delete(slot.key)
    // A slot without an isolate has loading callers, who count as leases, so what leaves here is loaded.
    slot.isolate?.dispose()
  }
}
