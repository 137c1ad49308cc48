/** Sums that only grow, at one moment. */
export interface LoadSums {
  readonly atMs: number
  /** CPU time of the process. */
  readonly cpuMs: number
  /** Time in which its event loop was busy. */
  readonly loopMs: number
  /** Time in which the run delay was above its target. */
  readonly delayedMs: number
}

/** Means over a time that ends now. */
export interface LoadMeans {
  readonly cpuCores: number
  /** 0 to 1. */
  readonly loopUtilization: number
  /** Share of the time in which the run delay was above its target, 0 to 1. */
  readonly delayedShare: number
  /** How much of the window is known, in ms. */
  readonly spanMs: number
}

/** What a host did over the last while, from which the mean over any window up to that long can be told. */
export class LoadHistory {
  readonly #keptMs: number
  #sums: LoadSums[] = []
  #first = 0

  /** @param keptMs the longest window that will be asked for */
  constructor(keptMs: number) {
    this.#keptMs = keptMs
  }

  add(sums: LoadSums): void {
    this.#sums.push(sums)
    while (this.#first < this.#sums.length - 1 && this.#sums[this.#first + 1]!.atMs <= sums.atMs - this.#keptMs) this.#first++
    if (this.#first < 1024) return
    this.#sums = this.#sums.slice(this.#first)
    this.#first = 0
  }

  /** Means over the last so many ms, or over as much as is known. */
  over(windowMs: number): LoadMeans {
    const last = this.#sums.at(-1)
    const from = last && this.#sumsAt(last.atMs - windowMs)
    const spanMs = last && from ? last.atMs - from.atMs : 0
    if (last === undefined || from === undefined || spanMs === 0) {
      return { cpuCores: 0, loopUtilization: 0, delayedShare: 0, spanMs: 0 }
    }
    return {
      cpuCores: (last.cpuMs - from.cpuMs) / spanMs,
      loopUtilization: Math.min(1, (last.loopMs - from.loopMs) / spanMs),
      delayedShare: Math.min(1, (last.delayedMs - from.delayedMs) / spanMs),
      spanMs,
    }
  }

  /** The newest sums that are at least so old, or else the oldest. */
  #sumsAt(atMs: number): LoadSums | undefined {
    let [low, high] = [this.#first, this.#sums.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (this.#sums[middle]!.atMs <= atMs) low = middle
      else high = middle - 1
    }
    return this.#sums[low]
  }
}
