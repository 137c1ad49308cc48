/** The right to have an isolate entered. Given back exactly once; giving it back again is harmless. */
export interface Pass {
  leave(): void
}

interface Asking {
  readonly begin: (pass: Pass) => void
}

/**
 * Lets a few isolates be entered at a time, in the order in which they asked: more would not run sooner, but in turns on the same core, and
 * each of their threads would take its share of the event loop's.
 */
export class EntryGate {
  readonly #places: number
  #asking: Asking[] = []
  #next = 0
  #taken = 0
  #isOpening = false

  /** @param places isolates that may be entered at the same time */
  constructor(places: number) {
    this.#places = places
  }

  /** Isolates that ask to be entered. */
  get waiting(): number {
    return this.#asking.length - this.#next
  }

  /** Calls back with a pass: at once if there is a place, else when one is left. */
  enter(begin: (pass: Pass) => void): void {
    if (this.#taken < this.#places && this.waiting === 0) begin(this.#pass())
    else this.#asking.push({ begin })
  }

  #pass(): Pass {
    this.#taken++
    let isLeft = false
    const leave = (): void => {
      if (isLeft) return
      isLeft = true
      this.#taken--
      this.#open()
    }
    return { leave }
  }

  /** Whoever begins may leave at once, which must not end in as many calls within each other as there are that ask. */
  #open(): void {
    if (this.#isOpening) return
    this.#isOpening = true
    while (this.#taken < this.#places && this.waiting > 0) this.#asking[this.#next++]!.begin(this.#pass())
    this.#isOpening = false
    if (this.#next < this.#asking.length && this.#next < 1024) return
    this.#asking = this.#asking.slice(this.#next)
    this.#next = 0
  }
}
