import { monotonicClock, type Clock } from '@carpool/core'

/** Fetches that one guest may begin at once, */
const BURST = 500
/** and in each ms from then on. */
const PER_MS = 5
/** How often those that wait are looked at, in ms. */
const LOOK_MS = 5

interface Bucket {
  tokens: number
  filledAtMs: number
  /** What begins each fetch that waits, by its number, in order. */
  readonly waiting: Map<number, () => void>
}

/**
 * Has the fetches of each guest begin no faster than a server that others use as well can take them. What is stopped while it waits never begins, so a loop of
 * fetches that are stopped at once costs its own isolate only.
 */
export class FetchPace<G extends object> {
  readonly #clock: Clock
  readonly #buckets = new WeakMap<G, Bucket>()
  /** Whose fetches wait. */
  readonly #held = new Set<G>()
  readonly #guestOf = new Map<number, G>()
  #timer: NodeJS.Timeout | undefined

  constructor(clock: Clock = monotonicClock) {
    this.#clock = clock
  }

  /** Fetches that wait. */
  get waiting(): number {
    return this.#guestOf.size
  }

  /** Begins a fetch of a guest, now or when its turn comes. */
  begin(guest: G, number: number, send: () => void): void {
    const bucket = this.#bucketOf(guest)
    this.#fill(bucket)
    if (bucket.waiting.size === 0 && bucket.tokens >= 1) {
      bucket.tokens--
      return send()
    }
    bucket.waiting.set(number, send)
    this.#guestOf.set(number, guest)
    this.#held.add(guest)
    this.#timer ??= setInterval(() => this.look(), LOOK_MS)
  }

  /** @returns whether the fetch had not begun yet: now it never does */
  drop(number: number): boolean {
    const guest = this.#guestOf.get(number)
    if (guest === undefined) return false
    this.#guestOf.delete(number)
    return this.#buckets.get(guest)?.waiting.delete(number) ?? false
  }

  /** Begins those whose turn has come. */
  look(): void {
    for (const guest of this.#held) {
      const bucket = this.#bucketOf(guest)
      this.#fill(bucket)
      for (const [number, send] of bucket.waiting) {
        if (bucket.tokens < 1) break
        bucket.tokens--
        bucket.waiting.delete(number)
        this.#guestOf.delete(number)
        send()
      }
      if (bucket.waiting.size === 0) this.#held.delete(guest)
    }
    if (this.#held.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #bucketOf(guest: G): Bucket {
    let bucket = this.#buckets.get(guest)
    if (bucket === undefined)
      this.#buckets.set(guest, (bucket = { tokens: BURST, filledAtMs: this.#clock(), waiting: new Map() }))
    return bucket
  }

  #fill(bucket: Bucket): void {
    const nowMs = this.#clock()
    bucket.tokens = Math.min(BURST, bucket.tokens + (nowMs - bucket.filledAtMs) * PER_MS)
    bucket.filledAtMs = nowMs
  }
}
