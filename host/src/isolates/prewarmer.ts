import type { Holder } from '@carpool/core'
import { Permits, type Permit } from '../scheduler/permits.ts'

/** Makes a blank isolate with the given heap limit. `isForLater`: nobody waits for it, so it may take longer and hold less. */
export type MakeBlank<Blank> = (memoryLimitMb: number, isForLater: boolean) => Promise<Blank>

/** CPU time that it takes to make one, in ms. */
const MAKING_MS = 8

/** Heap limits for which blanks are kept: those asked for last. */
const MAX_SHELVES = 4

/**
 * How often it is looked, after a blank was taken, whether the next one can be made, in ms. To make one holds up the event loop
 * and takes a core: made at once, it more than doubled the time of the load, and of the call that waits for it.
 */
const LOOK_MS = 2

/** Functions that load one after the other, or run for long, put it off for so long at most, in ms. */
const MOST_DELAY_MS = 100

/**
 * Keeps blank isolates ready, because making one takes longer than loading a function into it. An isolate's heap limit is fixed
 * when it is made, so there is one shelf for each limit in use; a limit gets its shelf when it is first asked for.
 *
 * To make an isolate takes the event loop and a core. Of those that functions wait for only so many are made at a time, in fair
 * order between owners: twenty that are made at once leave nothing to what runs.
 */
export class Prewarmer<Blank extends { dispose(): void }> {
  readonly #make: MakeBlank<Blank>
  readonly #shelfSize: number
  readonly #isBusy: () => boolean
  readonly #making: Permits
  readonly #shelves = new Map<number, Blank[]>()
  #filling: Promise<void> | undefined
  /** Since when it is put off to fill the shelves, on the monotonic clock, in ms. */
  #dueSinceMs: number | undefined
  #inUse = 0

  /**
   * @param shelfSize blanks to keep for each heap limit; 0 makes every isolate on demand
   * @param atATime blanks that may be made at the same time for functions that wait
   * @param isBusy whether functions run, or are about to
   */
  constructor(make: MakeBlank<Blank>, shelfSize: number, atATime: number, isBusy: () => boolean) {
    this.#make = make
    this.#shelfSize = shelfSize
    this.#isBusy = isBusy
    this.#making = new Permits(atATime)
  }

  /**
   * Loads something into a blank, ready made if there is one and nobody else waits for one, and has the shelf filled up again a
   * little later.
   */
  async use<T>(memoryLimitMb: number, holder: Holder, load: (blank: Blank) => Promise<T>): Promise<T> {
    const shelf = this.#shelf(memoryLimitMb)
    const blank = this.#making.waiting === 0 ? shelf.shift() : undefined
    this.#inUse++
    this.#fillSoon()
    try {
      return await load(blank ?? (await this.#makeInTurn(memoryLimitMb, holder)))
    } finally {
      this.#inUse--
    }
  }

  /** Opens a shelf for a heap limit, if there is none. */
  open(memoryLimitMb: number): void {
    this.#shelf(memoryLimitMb)
  }

  /** Fills all shelves, one blank at a time. Resolves when nothing is missing, or functions wait for theirs. */
  fill(): Promise<void> {
    this.#filling ??= this.#fillAll().finally(() => {
      this.#filling = undefined
    })
    return this.#filling
  }

  async #makeInTurn(memoryLimitMb: number, holder: Holder): Promise<Blank> {
    const permit = await new Promise<Permit>((begin) => this.#making.request({ guest: { holder }, costMs: MAKING_MS, begin }))
    try {
      // One that was put on the shelf meanwhile is for who has waited longest.
      return this.#shelves.get(memoryLimitMb)?.shift() ?? (await this.#make(memoryLimitMb, false))
    } finally {
      permit.release(MAKING_MS)
    }
  }

  #fillSoon(): void {
    if (this.#dueSinceMs !== undefined) return
    this.#dueSinceMs = performance.now()
    this.#fillLater()
  }

  #fillLater(): void {
    setTimeout(() => {
      const waitedMs = performance.now() - (this.#dueSinceMs ?? 0)
      const isPutOff = waitedMs < MOST_DELAY_MS && (this.#inUse > 0 || this.#isBusy())
      if (isPutOff || this.#making.waiting > 0) return this.#fillLater()
      this.#dueSinceMs = undefined
      void this.fill().catch(() => {})
    }, LOOK_MS).unref()
  }

  async #fillAll(): Promise<void> {
    for (;;) {
      const missing = [...this.#shelves].find(([, shelf]) => shelf.length < this.#shelfSize)
      if (missing === undefined) return
      // It is filled up when they have theirs.
      if (this.#making.waiting > 0) return this.#fillSoon()
      const [memoryLimitMb, shelf] = missing
      const blank = await this.#make(memoryLimitMb, true)
      // Its shelf may have had to make room meanwhile.
      if (this.#shelves.get(memoryLimitMb) === shelf) shelf.push(blank)
      else blank.dispose()
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
