/** `node:perf_hooks` in a function: the clock of the web, without what looks into V8 and the event loop. */
const { performance } = globalThis

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

class PerformanceEntry {
  readonly name: string
  readonly entryType: string
  readonly startTime: number
  readonly duration: number
  readonly detail: unknown

  constructor(name: string, entryType: string, startTime: number, duration: number, detail: unknown = null) {
    this.name = name
    this.entryType = entryType
    this.startTime = startTime
    this.duration = duration
    this.detail = detail
  }

  toJSON(): object {
    return { ...this }
  }
}
class PerformanceMark extends PerformanceEntry {}
class PerformanceMeasure extends PerformanceEntry {}
class PerformanceResourceTiming extends PerformanceEntry {}
class PerformanceObserverEntryList {}

interface Options {
  readonly startTime?: number
  readonly detail?: unknown
  readonly start?: string | number
  readonly end?: string | number
  readonly duration?: number
}

/** Marks and measures, where the global has none. */
function addMarks(target: object): void {
  let entries: PerformanceEntry[] = []
  const timeOf = (mark: string | number | undefined, otherwise: number): number => {
    if (typeof mark === 'number') return mark
    if (mark === undefined) return otherwise
    const found = entries.findLast((one) => one.entryType === 'mark' && one.name === mark)
    if (found === undefined) throw new DOMException(`The "${mark}" performance mark has not been set`, 'SyntaxError')
    return found.startTime
  }
  const keep = <E extends PerformanceEntry>(entry: E): E => {
    entries.push(entry)
    return entry
  }
  const clear = (type: string) => (name?: string) => {
    entries = entries.filter((one) => one.entryType !== type || (name !== undefined && one.name !== name))
  }
  const members = {
    mark: (name: string, { startTime = performance.now(), detail = null }: Options = {}) =>
      keep(new PerformanceMark(String(name), 'mark', startTime, 0, detail)),
    measure: (name: string, from?: string | Options, to?: string) => {
      const options =
        typeof from === 'object' ? from : { ...(from !== undefined && { start: from }), ...(to !== undefined && { end: to }) }
      const end = timeOf(options.end, performance.now())
      const start = options.duration === undefined ? timeOf(options.start, 0) : end - options.duration
      return keep(new PerformanceMeasure(String(name), 'measure', start, end - start, options.detail))
    },
    clearMarks: clear('mark'),
    clearMeasures: clear('measure'),
    getEntries: () => [...entries],
    getEntriesByName: (name: string, type?: string) =>
      entries.filter((one) => one.name === name && (type === undefined || one.entryType === type)),
    getEntriesByType: (type: string) => entries.filter((one) => one.entryType === type),
  }
  for (const [name, value] of Object.entries(members)) {
    if (!(name in target)) Object.defineProperty(target, name, { value, writable: true, configurable: true })
  }
}

const eventLoopUtilization = (): object => ({ idle: 0, active: 0, utilization: 0 })
const timerify = <F>(callback: F): F => callback
addMarks(performance)
for (const [name, value] of Object.entries({ eventLoopUtilization, timerify, nodeTiming: {} })) {
  if (!(name in performance)) Object.defineProperty(performance, name, { value, writable: true, configurable: true })
}

/** Nothing is observed: entries can be asked for. */
class PerformanceObserver {
  static readonly supportedEntryTypes: readonly string[] = []
  observe(): void {}
  disconnect(): void {}
  takeRecords(): PerformanceEntry[] {
    return []
  }
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
const { Performance } = globalThis as { Performance?: unknown }

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
