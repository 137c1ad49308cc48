/** The right to have an isolate entered. Given back exactly once; giving it back again is harmless. */
export class Pass {
  #onLeave: (() => void) | undefined

  constructor(onLeave: () => void) {
    this.#onLeave = onLeave
  }

  leave(): void {
    const onLeave = this.#onLeave
    this.#onLeave = undefined
    onLeave?.()
  }
}

export interface AskingGuest {
  /** Whose the isolate is. */
  readonly guest: object
  /** CPU time that its stays usually take, in ms. */
  readonly costMs: number
  /** Called with the pass when it is its turn; it may leave at once. */
  readonly begin: (pass: Pass) => void
}

interface Waiting {
  readonly asking: AskingGuest
  readonly costMs: number
  readonly startMs: number
}

/** A stay costs at least this much, in ms: what costs nothing would always go first. */
const MIN_COST_MS = 0.02

/**
 * Lets a few isolates be entered at a time: more would not run sooner, but in turns on the same core, and each of their threads would take its
 * share of the event loop's. Who asks is let in by the CPU that it has had and is about to have while others waited (self-clocked fair queueing: Golestani,
 * INFOCOM 1994): with three hundred guests at the gate, one that needs 20 µs does not wait for a hundred that need 10 ms each, and
 * one that always asks gets no more than its share.
 */
export class EntryGate {
  readonly #places: number
  #asking: Waiting[] = []
  /** Virtual time up to which each guest has had its share, in ms of CPU. */
  readonly #servedToMs = new WeakMap<object, number>()
  #virtualMs = 0
  #taken = 0
  #isOpening = false
  readonly #onLeave = (): void => {
    this.#taken--
    this.#open()
  }

  /** @param places isolates that may be entered at the same time */
  constructor(places: number) {
    this.#places = places
  }

  /** Isolates that ask to be entered. */
  get waiting(): number {
    return this.#asking.length
  }

  /** Calls back with a pass: at once if there is a place, else when it is its turn. */
  enter(asking: AskingGuest): void {
    if (this.#taken < this.#places && this.waiting === 0) return asking.begin(this.#pass())
    const startMs = Math.max(this.#servedToMs.get(asking.guest) ?? 0, this.#virtualMs)
    this.#asking.push({ asking, costMs: Math.max(asking.costMs, MIN_COST_MS), startMs })
  }

  #pass(): Pass {
    this.#taken++
    return new Pass(this.#onLeave)
  }

  /** Whoever begins may leave at once, which must not end in as many calls within each other as there are that ask. */
  #open(): void {
    if (this.#isOpening) return
    this.#isOpening = true
    while (this.#taken < this.#places && this.waiting > 0) {
      const { asking, startMs, costMs } = this.#takeNext()
      this.#virtualMs = Math.max(this.#virtualMs, startMs)
      this.#servedToMs.set(asking.guest, startMs + costMs)
      asking.begin(this.#pass())
    }
    this.#isOpening = false
  }

  /** The one that would have had its share first; of several the one that asked first. There are as many at most as guests, so a look at all is short. */
  #takeNext(): Waiting {
    let next = 0
    for (let index = 1; index < this.#asking.length; index++) {
      const [one, other] = [this.#asking[index]!, this.#asking[next]!]
      if (one.startMs + one.costMs < other.startMs + other.costMs) next = index
    }
    return this.#asking.splice(next, 1)[0]!
  }
}
