/** `node:perf_hooks` in a function: that of the web, without what looks into V8 and the event loop. */
import { refuse } from './refuse.ts'

type Class = new (...args: never[]) => object
type Classes =
  | 'Performance'
  | 'PerformanceEntry'
  | 'PerformanceMark'
  | 'PerformanceMeasure'
  | 'PerformanceObserver'
  | 'PerformanceObserverEntryList'

const { performance } = globalThis
const { Performance, PerformanceEntry, PerformanceMark, PerformanceMeasure, PerformanceObserver, PerformanceObserverEntryList } =
  globalThis as unknown as Readonly<Record<Classes, Class>>

const constants = Object.freeze({
  NODE_PERFORMANCE_GC_MAJOR: 4,
  NODE_PERFORMANCE_GC_MINOR: 1,
  NODE_PERFORMANCE_GC_INCREMENTAL: 8,
  NODE_PERFORMANCE_GC_WEAKCB: 16,
  NODE_PERFORMANCE_GC_FLAGS_NO: 0,
  NODE_PERFORMANCE_GC_FLAGS_CONSTRUCT_RETAINED: 2,
  NODE_PERFORMANCE_GC_FLAGS_FORCED: 4,
  NODE_PERFORMANCE_GC_FLAGS_SYNCHRONOUS_PHANTOM_PROCESSING: 8,
  NODE_PERFORMANCE_GC_FLAGS_ALL_AVAILABLE_GARBAGE: 16,
  NODE_PERFORMANCE_GC_FLAGS_ALL_EXTERNAL_MEMORY: 32,
  NODE_PERFORMANCE_GC_FLAGS_SCHEDULE_IDLE: 64,
})

/** Nothing is measured of what is fetched. */
class PerformanceResourceTiming extends PerformanceEntry {}

const eventLoopUtilization = (): object => ({ idle: 0, active: 0, utilization: 0 })
const timerify = <F>(callback: F): F => callback
for (const [name, value] of Object.entries({ eventLoopUtilization, timerify, nodeTiming: {} })) {
  if (!(name in performance)) Object.defineProperty(performance, name, { value, writable: true, configurable: true })
}

/** Values below this are told apart one by one, larger ones by three figures, as in the histograms of Node.js. */
const EXACT_BELOW = 2048

/** How many values count as one with `value`. */
function widthOf(value: number): number {
  return value < EXACT_BELOW ? 1 : 2 ** (Math.floor(Math.log2(value)) - 10)
}

class Histogram {
  /** How often values came, by the least value that counts as one with them. */
  readonly #counts = new Map<number, number>()
  #lastMs: number | undefined
  count = 0
  exceeds = 0

  record(value: number | bigint): void {
    const given = Number(value)
    if (!Number.isSafeInteger(given) || given < 1) {
      const error = new RangeError(
        `The value of "val" is out of range. It must be >= 1 && <= 9007199254740991. Received ${value}`,
      )
      throw Object.assign(error, { code: 'ERR_OUT_OF_RANGE' })
    }
    const least = given - (given % widthOf(given))
    this.#counts.set(least, (this.#counts.get(least) ?? 0) + 1)
    this.count++
  }
  /** Records the nanoseconds since it was called last. */
  recordDelta(): void {
    const nowMs = performance.now()
    if (this.#lastMs !== undefined) this.record(Math.max(1, Math.round((nowMs - this.#lastMs) * 1e6)))
    this.#lastMs = nowMs
  }
  reset(): void {
    this.#counts.clear()
    this.#lastMs = undefined
    this.count = 0
  }
  get min(): number {
    return this.count === 0 ? 9_223_372_036_854_776_000 : this.#sorted()[0]![0]
  }
  get max(): number {
    return this.percentile(100)
  }
  get mean(): number {
    return this.#sum((value) => value) / this.count
  }
  get stddev(): number {
    const { mean } = this
    return Math.sqrt(this.#sum((value) => (value - mean) ** 2) / this.count)
  }
  percentile(percent: number): number {
    let left = Math.max(1, Math.round((percent / 100) * this.count))
    for (const [least, count] of this.#sorted()) {
      left -= count
      if (left <= 0) return least + widthOf(least) - 1
    }
    return 0
  }
  enable(): boolean {
    return true
  }
  disable(): boolean {
    return true
  }

  #sorted(): [least: number, count: number][] {
    return [...this.#counts].toSorted(([one], [other]) => one - other)
  }
  /** Takes the middle of what counts as one. */
  #sum(of: (value: number) => number): number {
    let sum = 0
    for (const [least, count] of this.#counts) sum += of(least + Math.floor(widthOf(least) / 2)) * count
    return sum
  }
}
const createHistogram = (): Histogram => new Histogram()
const monitorEventLoopDelay = (): Histogram => new Histogram()

const { createSlidingWindowHistogram, importHistogram } = refuse('perf_hooks', 'the runtime has none', [
  'createSlidingWindowHistogram',
  'importHistogram',
])

export {
  constants,
  createHistogram,
  createSlidingWindowHistogram,
  eventLoopUtilization,
  importHistogram,
  monitorEventLoopDelay,
  Performance,
  performance,
  PerformanceEntry,
  PerformanceMark,
  PerformanceMeasure,
  PerformanceObserver,
  PerformanceObserverEntryList,
  PerformanceResourceTiming,
  timerify,
}
export default {
  constants,
  createHistogram,
  createSlidingWindowHistogram,
  eventLoopUtilization,
  importHistogram,
  monitorEventLoopDelay,
  Performance,
  performance,
  PerformanceEntry,
  PerformanceMark,
  PerformanceMeasure,
  PerformanceObserver,
  PerformanceObserverEntryList,
  PerformanceResourceTiming,
  timerify,
}
