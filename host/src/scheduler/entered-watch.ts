import type { Guest } from '../isolates/guest.ts'
import type { Stay } from './stay.ts'

/**
 * How often guests that are entered are looked at, in ms: what a limit is kept to, and for how long what they say may wait
 * while they run.
 */
const LOOK_MS = 10

/** Keeps up with what guests say and use while they are entered, and has each judged. */
export class EnteredWatch {
  readonly #entered = new Map<Guest, Stay>()
  readonly #judge: (guest: Guest, stay: Stay) => void
  #timer: NodeJS.Timeout | undefined

  constructor(judge: (guest: Guest, stay: Stay) => void) {
    this.#judge = judge
  }

  began(guest: Guest, stay: Stay): void {
    this.#entered.set(guest, stay)
    this.#timer ??= setInterval(() => this.look(), LOOK_MS)
  }

  ended(guest: Guest): void {
    this.#entered.delete(guest)
  }

  get entered(): Iterable<Guest> {
    return this.#entered.keys()
  }

  get count(): number {
    return this.#entered.size
  }

  /** Brings what is known of the stays under way up to date. */
  update(): void {
    for (const [guest, stay] of this.#entered) {
      // What is left of one is nobody's any more.
      if (!stay.isEnded) guest.measure(stay)
    }
  }

  /** Hears them, brings them up to date, and has each judged. */
  look(): void {
    if (this.#entered.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
      return
    }
    // One that does not end must hold up nobody who has his answer by now.
    for (const guest of this.#entered.keys()) guest.hear()
    this.update()
    for (const [guest, stay] of this.#entered) this.#judge(guest, stay)
  }
}
