import { monotonicClock, type Clock } from '@carpool/core'

/** The right to have an isolate entered. Given back exactly once; giving it back again is harmless. */
export interface Pass {
  /** It has been in for long: others may come in beside it. */
  stepAside(): void
  leave(): void
}

export interface AskingGuest {
  /** Whose the isolate is. */
  readonly guest: object
  /** CPU time that its stays usually take, in ms. */
  readonly costMs: number
  /** Whether that is known, and short: it will not stay for long. Default: true. */
  readonly isShort?: boolean
  /** Called with the pass when it is its turn; it may leave at once. */
  readonly begin: (pass: Pass) => void
}

interface Waiting extends AskingGuest {
  readonly startMs: number
}

/** While there are as many that have been in for long as there are places, one more of which it is not known how long it takes comes in each so many ms. */
const NEWCOMER_MS = 1_000

/** A stay costs at least this much, in ms: what costs nothing would always go first. */
const MIN_COST_MS = 0.02

/**
 * Lets a few isolates be entered at a time: more would not run sooner, but in turns on the same core, and each of their threads would take its
 * share of the event loop's. Who asks is let in by the CPU that it has had and is about to have while others waited (self-clocked fair queueing: Golestani,
 * INFOCOM 1994): with three hundred guests at the gate, one that needs 20 µs does not wait for a hundred that need 10 ms each, and
 * one that always asks gets no more than its share.
 *
 * Who has been in for long no longer takes a place, but still a share of the cores. With twenty endless loops in, one that needs 5 ms gets a twentieth of them; so
 * those of which it is not known that they are short come in one by one.
 */
export class EntryGate {
  readonly #places: number
  #asking: Waiting[] = []
  /** Virtual time up to which each guest has had its share, in ms of CPU. */
  readonly #servedToMs = new WeakMap<object, number>()
  #virtualMs = 0
  #taken = 0
  /** How many have been in for long. */
  #long = 0
  #nextNewcomerMs = 0
  #isNewcomerDue = false
  #isOpening = false
  readonly #clock: Clock

  /** @param places isolates that may be entered at the same time */
  constructor(places: number, clock: Clock = monotonicClock) {
    this.#places = places
    this.#clock = clock
  }

  /** Isolates that ask to be entered. */
  get waiting(): number {
    return this.#asking.length
  }

  /** Calls back with a pass: at once if there is a place, else when it is its turn. */
  enter(asking: AskingGuest): void {
    if (this.#taken < this.#places && this.waiting === 0 && this.#mayEnter(asking)) return this.#let(asking)
    const startMs = Math.max(this.#servedToMs.get(asking.guest) ?? 0, this.#virtualMs)
    this.#asking.push({ ...asking, costMs: Math.max(asking.costMs, MIN_COST_MS), startMs })
    this.#open()
  }

  #mayEnter({ isShort = true }: AskingGuest): boolean {
    return isShort || this.#long < this.#places || this.#clock() >= this.#nextNewcomerMs
  }

  #let({ isShort = true, begin }: AskingGuest): void {
    if (!isShort && this.#long >= this.#places) this.#nextNewcomerMs = this.#clock() + NEWCOMER_MS
    begin(this.#pass())
  }

  #pass(): Pass {
    this.#taken++
    let state: 'in' | 'aside' | 'out' = 'in'
    const stepAside = (): void => {
      if (state !== 'in') return
      state = 'aside'
      this.#taken--
      this.#long++
      this.#open()
    }
    const leave = (): void => {
      if (state === 'out') return
      if (state === 'in') this.#taken--
      else this.#long--
      state = 'out'
      this.#open()
    }
    return { stepAside, leave }
  }

  /** Whoever begins may leave at once, which must not end in as many calls within each other as there are that ask. */
  #open(): void {
    if (this.#isOpening) return
    this.#isOpening = true
    while (this.#taken < this.#places && this.waiting > 0) {
      const next = this.#takeNext()
      if (next === undefined) break
      const { guest, startMs, costMs } = next
      this.#virtualMs = Math.max(this.#virtualMs, startMs)
      this.#servedToMs.set(guest, startMs + costMs)
      this.#let(next)
    }
    this.#isOpening = false
    if (this.waiting === 0 || this.#taken >= this.#places) return
    // Those that are left wait for their turn as newcomers.
    if (this.#isNewcomerDue) return
    this.#isNewcomerDue = true
    const waitMs = Math.max(1, this.#nextNewcomerMs - this.#clock())
    setTimeout(() => {
      this.#isNewcomerDue = false
      this.#open()
    }, waitMs).unref()
  }

  /** The one that would have had its share first; of several the one that asked first. There are as many at most as guests, so a look at all is short. */
  #takeNext(): Waiting | undefined {
    let next: number | undefined
    for (let index = 0; index < this.#asking.length; index++) {
      const one = this.#asking[index]!
      if (!this.#mayEnter(one)) continue
      const other = next === undefined ? undefined : this.#asking[next]!
      if (other === undefined || one.startMs + one.costMs < other.startMs + other.costMs) next = index
    }
    return next === undefined ? undefined : this.#asking.splice(next, 1)[0]
  }
}
