/** Makes a blank isolate with the given heap limit. */
export type MakeBlank<Blank> = (memoryLimitMb: number) => Promise<Blank>

/**
 * Keeps blank isolates ready, because making one takes longer than loading a function into it. An isolate's heap limit is fixed when it is
 * made, so there is one shelf for each limit in use; a limit gets its shelf when it is first asked for.
 */
export class Prewarmer<Blank extends { dispose(): void }> {
  readonly #make: MakeBlank<Blank>
  readonly #shelfSize: number
  readonly #shelves = new Map<number, Blank[]>()
  #filling: Promise<void> | undefined
  #closed = false

  /** @param shelfSize blanks to keep for each heap limit; 0 makes every isolate on demand */
  constructor(make: MakeBlank<Blank>, shelfSize: number) {
    this.#make = make
    this.#shelfSize = shelfSize
  }

  /** Takes a blank, ready made if there is one, and has the shelf filled up again. */
  async take(memoryLimitMb: number): Promise<Blank> {
    const blank = this.#shelf(memoryLimitMb).shift()
    // The refill waits for the event loop to turn: the caller's work comes first.
    setImmediate(() => void this.fill().catch(() => {}))
    return blank ?? this.#make(memoryLimitMb)
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

  close(): void {
    this.#closed = true
    for (const shelf of this.#shelves.values()) for (const blank of shelf.splice(0)) blank.dispose()
  }

  async #fillAll(): Promise<void> {
    for (;;) {
      const missing = [...this.#shelves].find(([, shelf]) => shelf.length < this.#shelfSize)
      if (missing === undefined || this.#closed) return
      const blank = await this.#make(missing[0])
      if (this.#closed) return blank.dispose()
      missing[1].push(blank)
    }
  }

  #shelf(memoryLimitMb: number): Blank[] {
    const shelf = this.#shelves.get(memoryLimitMb) ?? []
    this.#shelves.set(memoryLimitMb, shelf)
    return shelf
  }
}
