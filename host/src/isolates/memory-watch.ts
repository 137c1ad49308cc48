import { Account } from '../accounting/account.ts'

/** How much an isolate may run before its memory is looked at again, in ns of CPU: a look takes about 50 µs. */
const EVERY_CPU_NS = 20_000_000
/** The same in time, for one that runs seldom, in ms. */
const EVERY_MS = 1_000

/** Decides when to look at the memory of an isolate, and remembers the most that was seen. What comes and goes between two looks is not seen. */
export class MemoryWatch {
  /** What the looks themselves take. */
  readonly account = new Account()
  #peakBytes = 0
  #cpuSinceNs = 0
  #lookedAtMs = Number.NEGATIVE_INFINITY
  #isLooking = false

  get peakKb(): number {
    return Math.ceil(this.#peakBytes / 1024)
  }

  /** Whether to look now, after a stay of so much CPU. Once it has said yes, it waits for what was seen. */
  isDue(cpuNs: number, nowMs: number): boolean {
    this.#cpuSinceNs += cpuNs
    const isDue = !this.#isLooking && (this.#cpuSinceNs >= EVERY_CPU_NS || nowMs - this.#lookedAtMs >= EVERY_MS)
    this.#isLooking ||= isDue
    return isDue
  }

  saw(bytes: number, nowMs: number): void {
    this.#peakBytes = Math.max(this.#peakBytes, bytes)
    this.#lookedAtMs = nowMs
    this.#cpuSinceNs = 0
    this.#isLooking = false
  }
}
