/** `node:perf_hooks` in a function: that of the web, without what looks into V8 and the event loop. */
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

class Histogram {
  readonly #values: number[] = []
  record(value: number | bigint): void {
    this.#values.push(Number(value))
  }
  recordDelta(): void {}
  reset(): void {
    this.#values.length = 0
  }
  get count(): number {
    return this.#values.length
  }
  get min(): number {
    return this.#values.length === 0 ? 9_223_372_036_854_776_000 : Math.min(...this.#values)
  }
  get max(): number {
    return this.#values.length === 0 ? 0 : Math.max(...this.#values)
  }
  get mean(): number {
    return this.#values.reduce((sum, value) => sum + value, 0) / this.#values.length
  }
  get stddev(): number {
    const { mean } = this
    return Math.sqrt(this.#values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / this.#values.length)
  }
  get exceeds(): number {
    return 0
  }
  percentile(percent: number): number {
    const sorted = this.#values.toSorted((a, b) => a - b)
    return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? 0
  }
  enable(): boolean {
    return true
  }
  disable(): boolean {
    return true
  }
}
const createHistogram = (): Histogram => new Histogram()
const monitorEventLoopDelay = (): Histogram => new Histogram()

export {
  constants,
  createHistogram,
  eventLoopUtilization,
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
  eventLoopUtilization,
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
