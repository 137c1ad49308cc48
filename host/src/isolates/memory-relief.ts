import { totalmem } from 'node:os'
import { decideRelief, NO_PRESSURE } from './memory-pressure.ts'
import type { IsolatePool } from './isolate-pool.ts'

/** Looks at the memory of the process and the machine, and gives up idle isolates when it gets short. */
export class MemoryRelief {
  readonly #pool: Pick<IsolatePool<never>, 'counts' | 'relieve'>
  readonly #budgetBytes: number
  readonly #onHelpless: (text: string) => void
  #memory = NO_PRESSURE

  /** @param onHelpless told once when there is nothing more to give up */
  constructor(pool: Pick<IsolatePool<never>, 'counts' | 'relieve'>, budgetBytes: number, onHelpless: (text: string) => void) {
    this.#pool = pool
    this.#budgetBytes = budgetBytes
    this.#onHelpless = onHelpless
  }

  /** To be called about once a second. */
  look(): void {
    const rssBytes = process.memoryUsage.rss()
    const { decision, memory } = decideRelief(
      {
        atMs: performance.now(),
        rssBytes,
        budgetBytes: this.#budgetBytes,
        availableBytes: process.availableMemory(),
        // Where there is no limit it is larger than any machine.
        totalBytes: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
        evictableBytes: this.#pool.counts().evictableBytes,
      },
      this.#memory,
    )
    this.#memory = memory
    if (decision.giveUpBytes > 0) this.#pool.relieve(decision.giveUpBytes)
    if (!decision.isHelpless) return
    const [usedMb, budgetMb] = [rssBytes, this.#budgetBytes].map((bytes) => Math.round(bytes / 1024 / 1024))
    this.#onHelpless(
      decision.pressure === 'budget'
        ? `The host takes ${usedMb} MiB, its share is ${budgetMb} MiB, and there is no idle isolate left to give up.`
        : `The machine is short of memory, and there is no idle isolate left to give up; the host takes ${usedMb} MiB.`,
    )
  }
}
