/** Makes a blank isolate with the given heap limit. `isForLater`: nobody waits for it, so it may take longer and hold less. */
export type MakeBlank<Blank> = (memoryLimitMb: number, isForLater: boolean) => Promise<Blank>

/** Heap limits for which blanks are kept: those asked for last. */
const MAX_SHELVES = 4

/**
 * So long after a blank was taken the next one is made, in ms. To make one holds up the event loop and takes a core, and whoever has
 * taken one is about to load a function into it and to answer a call: made at once, it more than doubled the time of that.
 */
const REFILL_DELAY_MS = 10

/**
 * Keeps blank isolates ready, because making one takes longer than loading a function into it. An isolate's heap limit is fixed
 * when it is made, so there is one shelf for each limit in use; a limit gets its shelf when it is first asked for.
 */
export class Prewarmer<Blank extends { dispose(): void }> {
  readonly #make: MakeBlank<Blank>
  readonly #shelfSize: number
  readonly #shelves = new Map<number, Blank[]>()
  #filling: Promise<void> | undefined
  #isRefillDue = false

  /** @param shelfSize blanks to keep for each heap limit; 0 makes every isolate on demand */
  constructor(make: MakeBlank<Blank>, shelfSize: number) {
    this.#make = make
    this.#shelfSize = shelfSize
  }

  /** Takes a blank, ready made if there is one, and has the shelf filled up again a little later. */
  async take(memoryLimitMb: number): Promise<Blank> {
    const blank = this.#shelf(memoryLimitMb).shift()
    this.#fillSoon()
    return blank ?? this.#make(memoryLimitMb, false)
  }

  /** Opens a shelf for a heap limit, if there is none. */
  open(memoryLimitMb: number): void {
    this.#shelf(memoryLimitMb)
  }

  /** Fills all shelves, one blank at a time. Resolves when nothing is missing. */
  fill(): Promise<void> {
    this.#filling ??= this.#fillAll().finally(() => {
      this.#filling = undefined
    })
    return this.#filling
  }

  #fillSoon(): void {
    // It comes also while more are taken: else a shelf that is in demand would stay empty.
    if (this.#isRefillDue) return
    this.#isRefillDue = true
    setTimeout(() => {
      this.#isRefillDue = false
      void this.fill().catch(() => {})
    }, REFILL_DELAY_MS).unref()
  }

  async #fillAll(): Promise<void> {
    for (;;) {
      const missing = [...this.#shelves].find(([, shelf]) => shelf.length < this.#shelfSize)
      if (missing === undefined) return
      const [memoryLimitMb, shelf] = missing
      shelf.push(await this.#make(memoryLimitMb, true))
    }
  }

  #shelf(memoryLimitMb: number): Blank[] {
    const shelf = this.#shelves.get(memoryLimitMb) ?? []
    this.#shelves.delete(memoryLimitMb)
    this.#shelves.set(memoryLimitMb, shelf)
    const [oldest] = this.#shelves
    if (oldest !== undefined && this.#shelves.size > MAX_SHELVES) {
      this.#shelves.delete(oldest[0])
      for (const blank of oldest[1]) blank.dispose()
    }
    return shelf
  }
}
