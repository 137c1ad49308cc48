import type { Send } from '../send.ts'
import type { Stay } from './stay.ts'

/** From here on an entry is long, in ms. */
export const LONG_ENTRY_MS = 20

/** Tells the server whose entries run for long: if the process dies, it dies of one of those. */
export class LongEntries {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  runs(stay: Stay, revision: string): void {
    if (stay.isLong) return
    stay.isLong = true
    this.#send({ type: 'long-entry', revision, change: 1 })
  }

  ended(stay: Stay, revision: string): void {
    if (stay.isLong) this.#send({ type: 'long-entry', revision, change: -1 })
  }
}
