import { monotonicClock, type Clock } from '@carpool/core'

/** Fetches that one function may begin at once, */
const BURST = 200
/** and in each ms from then on. */
const PER_MS = 0.2
/** For each that is answered or has failed it may begin so many more, */
const PER_ANSWER = 2
/** up to so many at once. */
const MAX_BURST = 500
/** How often those that wait are checked, in ms. */
const CHECK_MS = 5
/** Functions that are remembered, besides those whose fetches wait: who is forgotten may begin a burst. */
const MAX_REMEMBERED = 1_000

interface Bucket {
  tokens: number
  filledAtMs: number
  /** What begins each fetch that waits, by its number. */
  readonly waiting: Map<number, () => void>
  /** Their numbers, the newest last, and some of those that were dropped. */
  numbers: number[]
}

/**
 * Has the fetches of each function begin no faster than a server that others use as well can take them. Each that is answered
 * or fails lets two others begin, so whoever is answered is soon as fast as that, and a flood that nobody answers, or that goes
 * on in one isolate after the other, is slow. What is stopped while it waits never begins, so a loop of fetches that are stopped
 * at once costs its own isolate only.
 *
 * Of those that wait the newest begins first: it has the most time left. In the order in which they came, each would begin when
 * its time is almost over, none would be answered, and a function that has more fetches than the pace allows would stay as slow
 * as that although its upstream is well again.
 */
export class FetchPace {
  readonly #clock: Clock
  /** By revision, the first one first. */
  readonly #buckets = new Map<string, Bucket>()
  /** Those whose fetches wait. */
  readonly #delayed = new Set<Bucket>()
  readonly #bucketOf = new Map<number, Bucket>()
  #timer: NodeJS.Timeout | undefined

  constructor(clock: Clock = monotonicClock) {
    this.#clock = clock
  }

  /** Fetches that wait. */
  get waiting(): number {
    return this.#bucketOf.size
  }

  /** Begins a fetch of a revision, now or when there is a token for it. */
  begin(revision: string, number: number, send: () => void): void {
    const bucket = this.#buckets.get(revision) ?? this.#add(revision)
    this.#fill(bucket)
    if (bucket.waiting.size === 0 && bucket.tokens >= 1) {
      bucket.tokens--
      return send()
    }
    bucket.waiting.set(number, send)
    bucket.numbers.push(number)
    this.#bucketOf.set(number, bucket)
    this.#delayed.add(bucket)
    this.#timer ??= setInterval(() => this.beginDue(), CHECK_MS)
  }

  /** A fetch of the revision has its response, or has failed, and was not stopped. */
  answered(revision: string): void {
    const bucket = this.#buckets.get(revision)
    if (bucket === undefined) return
    bucket.tokens = Math.min(MAX_BURST, bucket.tokens + PER_ANSWER)
    if (bucket.waiting.size > 0) this.#beginOf(bucket)
  }

  /** @returns whether the fetch had not begun yet: now it never does */
  drop(number: number): boolean {
    const bucket = this.#bucketOf.get(number)
    if (bucket === undefined) return false
    this.#bucketOf.delete(number)
    bucket.waiting.delete(number)
    if (bucket.numbers.length > 2 * bucket.waiting.size + BURST) bucket.numbers = [...bucket.waiting.keys()]
    return true
  }

  /** Begins those for which there are tokens by now. */
  beginDue(): void {
    for (const bucket of this.#delayed) {
      this.#fill(bucket)
      this.#beginOf(bucket)
      if (bucket.waiting.size === 0) this.#delayed.delete(bucket)
    }
    if (this.#delayed.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #beginOf(bucket: Bucket): void {
    while (bucket.tokens >= 1 && bucket.waiting.size > 0) {
      const number = bucket.numbers.pop()!
      const send = bucket.waiting.get(number)
      if (send === undefined) continue
      bucket.tokens--
      bucket.waiting.delete(number)
      this.#bucketOf.delete(number)
      send()
    }
  }

  #add(revision: string): Bucket {
    const bucket = { tokens: BURST, filledAtMs: this.#clock(), waiting: new Map(), numbers: [] }
    this.#buckets.set(revision, bucket)
    if (this.#buckets.size <= MAX_REMEMBERED) return bucket
    for (const [oldest, { waiting }] of this.#buckets) {
      if (waiting.size > 0) continue
      this.#buckets.delete(oldest)
      break
    }
    return bucket
  }

  #fill(bucket: Bucket): void {
    const nowMs = this.#clock()
    bucket.tokens = Math.max(bucket.tokens, Math.min(BURST, bucket.tokens + (nowMs - bucket.filledAtMs) * PER_MS))
    bucket.filledAtMs = nowMs
  }
}
