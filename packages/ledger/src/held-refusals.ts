import type { InvocationRecord } from '@carpool/core'
import type { LedgerProblem } from './failure.ts'

/** Most records that are held: 5 MB or so. */
export const MAX_HELD = 10_000
/** How often it is looked whether they can be written. */
const LOOK_MS = 500

export interface HeldRefusalsParts {
  /** Whether the ledger takes records, and none waits for it. */
  readonly isWritable: () => boolean
  /** Never waits and never fails. */
  readonly write: (record: InvocationRecord) => void
  readonly onProblem: (problem: LedgerProblem) => void
}

/**
 * Records of calls that were refused because they could not be recorded, until they can be. They are many, for clients come
 * again, and worth less than those of calls that ran: so they have a limit of their own, and do not wait in the journal's queue.
 */
export class HeldRefusals {
  readonly #parts: HeldRefusalsParts
  #held: InvocationRecord[] = []
  /** For how many there was no room. */
  #unrecorded = 0
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(parts: HeldRefusalsParts) {
    this.#parts = parts
  }

  /** Gives false if there is no room. */
  hold(record: InvocationRecord): boolean {
    if (this.#held.length >= MAX_HELD) {
      this.#unrecorded += 1
      return false
    }
    this.#held.push(record)
    if (this.#isClosed) this.#handOver()
    else this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref()
    return true
  }

  /** Hands over what is held, also if it cannot be written now; so it does with what still comes. */
  close(): void {
    this.#isClosed = true
    this.#handOver()
  }

  #look(): void {
    if (this.#parts.isWritable()) this.#handOver()
  }

  #handOver(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    const [held, unrecorded] = [this.#held, this.#unrecorded]
    this.#held = []
    this.#unrecorded = 0
    for (const record of held) this.#parts.write(record)
    if (unrecorded === 0) return
    const why = `while the ledger could not be written, more than ${MAX_HELD} were refused`
    this.#parts.onProblem({ message: `${unrecorded} calls that were refused have no record: ${why}.` })
  }
}
