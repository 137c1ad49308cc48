/** Delays longer than this count as this long, in µs. */
const MAX_US = 60_000_000
/**
 * Each doubling of the delay falls into eight buckets of the same width, so a bucket is at most an eighth as wide as its values
 * are large.
 */
const BUCKETS_PER_DOUBLING_LOG2 = 3
const BUCKETS = bucketOf(MAX_US) + 1

/** Run delays of a time, in µs. Percentiles are within 7 % of the exact ones. */
export interface RunDelaySummary {
  readonly count: number
  readonly p50Us: number
  readonly p90Us: number
  readonly p99Us: number
}

/** Counts run delays by their size: adding one allocates nothing, for every entry of a host passes here. */
export class RunDelayHistogram {
  readonly #counts = new Uint32Array(BUCKETS)
  #count = 0

  get count(): number {
    return this.#count
  }

  /** @param us the delay, in µs; what is no number of 0 or more counts as 0 */
  add(us: number): void {
    this.#counts[bucketOf(us > 0 ? Math.min(us, MAX_US) : 0)]!++
    this.#count++
  }

  summary(): RunDelaySummary {
    const found = [0, 0, 0]
    const ranks = [0.5, 0.9, 0.99].map((share) => Math.ceil(share * this.#count))
    for (let bucket = 0, next = 0, sum = 0; bucket < BUCKETS && next < ranks.length; bucket++) {
      sum += this.#counts[bucket]!
      while (next < ranks.length && this.#count > 0 && sum >= ranks[next]!) found[next++] = middleOf(bucket)
    }
    return { count: this.#count, p50Us: found[0]!, p90Us: found[1]!, p99Us: found[2]! }
  }

  reset(): void {
    this.#counts.fill(0)
    this.#count = 0
  }
}

function bucketOf(us: number): number {
  const whole = us | 0
  const shift = 31 - Math.clz32(whole) - BUCKETS_PER_DOUBLING_LOG2
  // Below eight each value has a bucket of its own.
  return shift <= 0 ? whole : (shift << BUCKETS_PER_DOUBLING_LOG2) + (whole >>> shift)
}

function middleOf(bucket: number): number {
  const shift = (bucket >>> BUCKETS_PER_DOUBLING_LOG2) - 1
  if (shift <= 0) return bucket
  const lowest = (bucket - (shift << BUCKETS_PER_DOUBLING_LOG2)) * 2 ** shift
  return lowest + (2 ** shift - 1) / 2
}
