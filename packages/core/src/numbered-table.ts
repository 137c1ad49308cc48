const PAGE_LENGTH = 256

interface Page<T> {
  readonly entries: Array<T | undefined>
  /** Entries that are in use. */
  used: number
}

/**
 * Entries by number, for numbers that only rise and entries that come and go quickly. A Map keeps them too long: V8 gives a Map
 * whose entries come and go a new table now and then. The old table keeps what it held and leads to the new one, so once one of
 * them is in V8's old space, all entries survive until the next full garbage collection.
 */
export class NumberedTable<T> {
  readonly #pages = new Map<number, Page<T>>()
  #size = 0
  #newest = 0

  get size(): number {
    return this.#size
  }

  get(number: number): T | undefined {
    return this.#pages.get(Math.floor(number / PAGE_LENGTH))?.entries[number % PAGE_LENGTH]
  }

  /** @param number a whole number from 0 on; nothing may be there */
  set(number: number, entry: T): void {
    const index = Math.floor(number / PAGE_LENGTH)
    let page = this.#pages.get(index)
    if (page === undefined) {
      page = { entries: Array.from<T | undefined>({ length: PAGE_LENGTH }), used: 0 }
      this.#pages.set(index, page)
      if (index !== this.#newest && this.#pages.get(this.#newest)?.used === 0) this.#pages.delete(this.#newest)
      this.#newest = index
    }
    page.entries[number % PAGE_LENGTH] = entry
    page.used++
    this.#size++
  }

  /** @returns what was there */
  delete(number: number): T | undefined {
    const index = Math.floor(number / PAGE_LENGTH)
    const page = this.#pages.get(index)
    const entry = page?.entries[number % PAGE_LENGTH]
    if (page === undefined || entry === undefined) return undefined
    page.entries[number % PAGE_LENGTH] = undefined
    this.#size--
    // Of the newest page the other numbers are still to come.
    if (--page.used === 0 && index !== this.#newest) this.#pages.delete(index)
    return entry
  }

  clear(): void {
    this.#pages.clear()
    this.#size = 0
  }

  *values(): Generator<T, void> {
    for (const { entries } of this.#pages.values()) for (const entry of entries) if (entry !== undefined) yield entry
  }
}
