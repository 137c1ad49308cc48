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
  release(): void
}

class Slot<P extends Pooled> implements EvictionCandidate {
  readonly key: string
  readonly loading: Promise<P>
  isolate: P | undefined
  leases = 0

  constructor(key: string, loading: Promise<P>) {
    this.key = key
    this.loading = loading
  }

  get hasBackgroundWork(): boolean {
    return this.isolate?.hasBackgroundWork ?? false
  }
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

  /** Takes a revision out: no new leases; its isolate is disposed when the last lease and its background work have ended. */
  retire(revision: string): void {
    const slot = this.#slots.get(revision)
    if (slot === undefined) return
    this.#slots.delete(revision)
    void slot.loading.then(() => this.#settle(slot)).catch(() => {})
  }

  #open(revision: string): Slot<P> {
    const slot = new Slot(revision, this.#options.load(revision))
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

  #lease(slot: Slot<P>, isolate: P): IsolateLease<P> {
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
    return { isolate, release }
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
