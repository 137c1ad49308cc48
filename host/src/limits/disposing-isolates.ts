import type { Batch } from '../scheduler/batch.ts'

interface Disposing {
  readonly revision: string
  readonly untilGone: PromiseWithResolvers<void>
}

/**
 * Isolates that were disposed and whose threads have not left them yet. Until they have, their revision gets no new isolate here:
 * what could not be ended once would not be ended in the next one either, and take another core.
 */
export class DisposingIsolates {
  readonly #batches = new Map<Batch, Disposing>()
  /** Revisions that have harmed the process. */
  readonly #harmful = new Set<string>()

  /** The isolate was disposed in this batch. */
  add(revision: string, batch: Batch): void {
    this.#batches.set(batch, { revision, untilGone: Promise.withResolvers() })
  }

  /** The thread has left the isolate. */
  left(batch: Batch): void {
    this.#batches.get(batch)?.untilGone.resolve()
    this.#batches.delete(batch)
  }

  /** The thread does not leave the isolate. */
  stuck(revision: string, batch: Batch): void {
    this.#harmful.add(revision)
    this.left(batch)
  }

  /** Resolves when no thread is in a disposed isolate of the revision, with whether it may have a new one here. */
  async mayLoad(revision: string): Promise<boolean> {
    for (;;) {
      if (this.#harmful.has(revision)) return false
      const disposing = [...this.#batches.values()].find((one) => one.revision === revision)
      if (disposing === undefined) return true
      await disposing.untilGone.promise
    }
  }
}
