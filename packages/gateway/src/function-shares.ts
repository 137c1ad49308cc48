/** Of what is free, how much the calls of one function may hold at most. */
const PORTION = 1 / 2

/**
 * Shares out bytes among functions, so that whoever floods one leaves room for the others: a function may hold at most half as much as is free.
 * Alone it gets a third; the more of them hold a lot, the less each may have, and who holds nothing gets something as long as it fits.
 * These are the dynamic thresholds of Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches" (1998).
 */
export class FunctionShares {
  readonly #totalBytes: number
  readonly #held = new Map<string, number>()
  #usedBytes = 0

  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes
  }

  /** Takes `bytes` for a function, or nothing. */
  tryTake(functionName: string, bytes: number): boolean {
    const held = this.#held.get(functionName) ?? 0
    const freeBytes = this.#totalBytes - this.#usedBytes
    // Else the last of what is almost used up could be taken by nobody.
    const mayTake = held === 0 ? bytes <= freeBytes : held + bytes <= freeBytes * PORTION
    if (mayTake) this.#change(functionName, held + bytes, bytes)
    return mayTake
  }

  give(functionName: string, bytes: number): void {
    this.#change(functionName, (this.#held.get(functionName) ?? 0) - bytes, -bytes)
  }

  #change(functionName: string, held: number, by: number): void {
    this.#usedBytes += by
    if (held === 0) this.#held.delete(functionName)
    else this.#held.set(functionName, held)
  }
}
