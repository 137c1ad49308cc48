import type { Stay } from './stay.ts'

/** Whatever can be made to sleep in the middle of its work. */
export interface Holdable {
  /** @returns false if it cannot */
  hold(): boolean
  resume(): void
  /** Leaves most of the cores to others. */
  confine(): void
  unconfine(): void
}

/** How long a turn is, in ms: long against what a change of turns costs, short against what people notice. */
export const TURN_MS = 30
/** Whoever has slept for so long is the next, however much it has had, in ms. */
const MAX_SLEEP_MS = 1_000

/** Whoever is held and uses this much CPU time nevertheless is in something that does not stop, in ns. */
const UNRULY_NS = 20e6

/** What is known of a stay that sleeps. */
interface Sleep {
  readonly guest: Holdable
  /** CPU time that the stay had used when it began to. */
  readonly usedNs: number
  /** How long the stay had been held before, in ms. */
  readonly heldMs: number
  /** On the monotonic clock, in ms. */
  readonly sinceMs: number
}

/**
 * Entries that take long go on by turns, as many at a time as there are cores. The system would give each of their threads the same share as that of an entry
 * which needs 5 ms, and as the host's own: with twenty endless loops, a twentieth. As it is, whoever is short runs beside no more of them than there are
 * cores, however many there are. It is the second level of a multilevel feedback queue (Corbató et al., AFIPS 1962), whose first is the gate. What cannot be stopped, as a built-in that runs for long, is kept to a few of the cores.
 */
export class Turns {
  readonly #places: number
  /** Since when each runs, on the monotonic clock, in ms; these and those that sleep in the order in which they began to. */
  readonly #awake = new Map<Stay, number>()
  readonly #asleep = new Map<Stay, Sleep>()

  /** @param places entries that may run at the same time */
  constructor(places: number) {
    this.#places = places
  }

  /** To be called at each look at a stay that has taken long, and is not lost. Whoever had its turn makes room for the next. */
  take(stay: Stay, guest: Holdable, nowMs = performance.now()): void {
    if (stay.isEnded) return
    const sleep = this.#asleep.get(stay)
    if (sleep !== undefined) {
      tellHeld(stay, sleep, nowMs)
      if (stay.totalNs - sleep.usedNs >= UNRULY_NS) guest.confine()
    } else if (!this.#awake.has(stay)) {
      this.#awake.set(stay, nowMs)
      if (this.#awake.size > this.#places) this.#hold(stay, guest, nowMs)
    } else if (this.#isOver(stay, nowMs)) {
      this.#hold(stay, guest, nowMs)
      this.#wakeNext(nowMs)
    }
  }

  /** The stay is over, or lost. Harmless for any that never was long. */
  end(stay: Stay, nowMs = performance.now()): void {
    const sleep = this.#asleep.get(stay)
    if (sleep !== undefined) this.#wake(stay, sleep, nowMs)
    if (this.#awake.delete(stay)) this.#wakeNext(nowMs)
  }

  /** Its turn began first and has lasted, and somebody waits who was not put to sleep just now, in exchange for another. */
  #isOver(stay: Stay, nowMs: number): boolean {
    const [first] = this.#awake
    const [oldest] = this.#asleep.values()
    if (first?.[0] !== stay || oldest === undefined) return false
    return nowMs - first[1] >= TURN_MS && nowMs - oldest.sinceMs >= TURN_MS
  }

  #hold(stay: Stay, guest: Holdable, nowMs: number): void {
    this.#awake.delete(stay)
    // Whoever cannot be held takes no turn from those that can.
    if (!guest.hold()) return
    // What it waits for is no lack of a core.
    stay.wasHeld = true
    this.#asleep.set(stay, { guest, usedNs: stay.totalNs, heldMs: stay.heldMs, sinceMs: nowMs })
  }

  /** The next is who has had the least CPU time, so that whoever needs hardly more than a turn need not wait for all the endless. */
  #wakeNext(nowMs: number): void {
    const [oldest] = this.#asleep
    if (oldest === undefined || this.#awake.size >= this.#places) return
    let next = oldest
    if (nowMs - oldest[1].sinceMs < MAX_SLEEP_MS) {
      for (const one of this.#asleep) if (one[0].totalNs < next[0].totalNs) next = one
    }
    const [stay, sleep] = next
    this.#awake.set(stay, nowMs)
    sleep.guest.unconfine()
    this.#wake(stay, sleep, nowMs)
  }

  #wake(stay: Stay, sleep: Sleep, nowMs: number): void {
    this.#asleep.delete(stay)
    tellHeld(stay, sleep, nowMs)
    sleep.guest.resume()
  }
}

function tellHeld(stay: Stay, { heldMs, sinceMs }: Sleep, nowMs: number): void {
  stay.heldMs = heldMs + nowMs - sinceMs
}
