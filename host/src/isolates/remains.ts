import type { Stay } from '../scheduler/stay.ts'

interface Remaining {
  readonly revision: string
  readonly untilGone: PromiseWithResolvers<void>
}

/**
 * What is left of isolates that were disposed: threads that have not come out yet. Until they have, their revision gets no new isolate here: what could not be
 * ended once would not be ended in the next one either, and take another core.
 */
export class Remains {
  readonly #stays = new Map<Stay, Remaining>()
  /** Revisions that have harmed the process. */
  readonly #harmful = new Set<string>()

  /** The isolate of a stay was disposed. */
  disposed(revision: string, stay: Stay): void {
    this.#stays.set(stay, { revision, untilGone: Promise.withResolvers() })
  }

  /** Its thread has come out. */
  left(stay: Stay): void {
    this.#settle(stay)
  }

  /** Its thread does not come out. */
  stuck(revision: string, stay: Stay): void {
    this.#harmful.add(revision)
    this.#settle(stay)
  }

  /** Resolves when nothing remains of a revision, with whether it may have a new isolate here. */
  async mayBegin(revision: string): Promise<boolean> {
    for (;;) {
      if (this.#harmful.has(revision)) return false
      const remaining = [...this.#stays.values()].find((one) => one.revision === revision)
      if (remaining === undefined) return true
      await remaining.untilGone.promise
    }
  }

  #settle(stay: Stay): void {
    this.#stays.get(stay)?.untilGone.resolve()
    this.#stays.delete(stay)
  }
}
