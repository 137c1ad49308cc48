/** User timing, and observers of it. */
import { toText } from '../language/values.ts'
import { now, setTimeout } from '../web-api/host.ts'
import { DOMException } from '../web-api/dom-exception.ts'
import { structuredClone } from '../web-api/structured-clone.ts'
import { asInterfaces, optionsOf } from './interfaces.ts'

/** Proves to a constructor that the runtime makes the object. */
const INTERNAL = Symbol('internal')

export class PerformanceEntry {
  readonly #name: string
  readonly #entryType: string
  readonly #startTime: number
  readonly #duration: number

  constructor(proof?: unknown, name = '', entryType = '', startTime = 0, duration = 0) {
    if (proof !== INTERNAL) throw new TypeError('A PerformanceEntry is made by what it measures.')
    this.#name = name
    this.#entryType = entryType
    this.#startTime = startTime
    this.#duration = duration
  }

  get name(): string {
    return this.#name
  }

  get entryType(): string {
    return this.#entryType
  }

  get startTime(): number {
    return this.#startTime
  }

  get duration(): number {
    return this.#duration
  }

  toJSON(): object {
    return { name: this.name, entryType: this.entryType, startTime: this.startTime, duration: this.duration }
  }
}

function detailOf(options: { detail?: unknown } | undefined): unknown {
  return options?.detail === undefined || options.detail === null ? null : structuredClone(options.detail)
}

interface MarkOptions {
  detail?: unknown
  startTime?: unknown
}

export class PerformanceMark extends PerformanceEntry {
  readonly #detail: unknown

  constructor(name: unknown, options?: MarkOptions | null) {
    if (arguments.length === 0) throw new TypeError('A mark needs a name.')
    const title = toText(name)
    const given = optionsOf<MarkOptions>(options, 'The options of a mark')
    const startTime = given.startTime === undefined ? now() : Number(given.startTime)
    if (startTime < 0) throw new TypeError(`A mark cannot be at ${startTime}.`)
    if (!Number.isFinite(startTime)) throw new TypeError(`A mark cannot be at ${startTime}.`)
    super(INTERNAL, title, 'mark', startTime, 0)
    this.#detail = detailOf(given)
  }

  get detail(): unknown {
    return this.#detail
  }

  override toJSON(): object {
    return { ...super.toJSON(), detail: this.detail }
  }
}

export class PerformanceMeasure extends PerformanceEntry {
  readonly #detail: unknown

  constructor(proof?: unknown, name = '', startTime = 0, duration = 0, detail: unknown = null) {
    super(proof, name, 'measure', startTime, duration)
    this.#detail = detail
  }

  get detail(): unknown {
    return this.#detail
  }

  override toJSON(): object {
    return { ...super.toJSON(), detail: this.detail }
  }
}

/** Marks and measures, in the order of their start. */
let entries: PerformanceEntry[] = []

function add(entry: PerformanceEntry): void {
  let index = entries.length
  while (index > 0 && entries[index - 1]!.startTime > entry.startTime) index--
  entries.splice(index, 0, entry)
  for (const observer of observers) observe(observer, entry)
}

export function mark(name: unknown, options?: MarkOptions | null): PerformanceMark {
  const made = new PerformanceMark(name, options)
  add(made)
  return made
}

interface MeasureOptions {
  detail?: unknown
  start?: unknown
  end?: unknown
  duration?: unknown
}

export function measure(name: unknown, startOrOptions?: unknown, endMark?: unknown): PerformanceMeasure {
  const title = toText(name)
  const isOptions = typeof startOrOptions === 'object' && startOrOptions !== null
  const options: MeasureOptions = isOptions ? startOrOptions : {}
  const { start, end, duration, detail } = options
  const hasAny = start !== undefined || end !== undefined || duration !== undefined || detail !== undefined
  if (isOptions && hasAny) {
    if (endMark !== undefined) throw new TypeError('A measure has either options or an end.')
    if (start === undefined && end === undefined) throw new TypeError('A measure with options needs a start or an end.')
    if (start !== undefined && end !== undefined && duration !== undefined) {
      throw new TypeError('A measure cannot have a start, an end and a duration.')
    }
  }
  const ofStart = isOptions ? start : startOrOptions === null ? undefined : startOrOptions
  const endMs =
    endMark !== undefined
      ? timeOf(endMark)
      : end !== undefined
        ? timeOf(end)
        : start !== undefined && duration !== undefined
          ? timeOf(start) + timeOf(duration)
          : now()
  const startMs =
    ofStart !== undefined ? timeOf(ofStart) : duration !== undefined && end !== undefined ? timeOf(end) - timeOf(duration) : 0
  const made = new PerformanceMeasure(INTERNAL, title, startMs, endMs - startMs, detailOf(options))
  add(made)
  return made
}

/** The time of a mark, or a time itself. */
function timeOf(given: unknown): number {
  if (typeof given === 'number') {
    if (given < 0 || !Number.isFinite(given)) throw new TypeError(`A measure cannot begin or end at ${given}.`)
    return given
  }
  const name = toText(given)
  const found = entries.findLast((entry) => entry.entryType === 'mark' && entry.name === name)
  if (found === undefined) throw new DOMException(`The mark ${JSON.stringify(name)} does not exist.`, 'SyntaxError')
  return found.startTime
}

function clear(type: string, name: unknown): void {
  entries = entries.filter((entry) => entry.entryType !== type || (name !== undefined && entry.name !== toText(name)))
}

export function clearMarks(name?: unknown): void {
  clear('mark', name)
}

export function clearMeasures(name?: unknown): void {
  clear('measure', name)
}

const byName = (list: readonly PerformanceEntry[], name: unknown, type: unknown): PerformanceEntry[] =>
  list.filter((entry) => entry.name === toText(name) && (type === undefined || entry.entryType === toText(type)))
const byType = (list: readonly PerformanceEntry[], type: unknown): PerformanceEntry[] =>
  list.filter((entry) => entry.entryType === toText(type))

export function getEntries(): PerformanceEntry[] {
  return [...entries]
}

export function getEntriesByName(name: unknown, type?: unknown): PerformanceEntry[] {
  return byName(entries, name, type)
}

export function getEntriesByType(type: unknown): PerformanceEntry[] {
  return byType(entries, type)
}

export class PerformanceObserverEntryList {
  readonly #entries: PerformanceEntry[]

  constructor(proof?: unknown, list: PerformanceEntry[] = []) {
    if (proof !== INTERNAL) throw new TypeError('A PerformanceObserverEntryList is given to an observer.')
    this.#entries = list.toSorted((one, other) => one.startTime - other.startTime)
  }

  getEntries(): PerformanceEntry[] {
    return [...this.#entries]
  }

  getEntriesByType(type: unknown): PerformanceEntry[] {
    return byType(this.#entries, type)
  }

  getEntriesByName(name: unknown, type?: unknown): PerformanceEntry[] {
    return byName(this.#entries, name, type)
  }
}

type Callback = (
  list: PerformanceObserverEntryList,
  observer: PerformanceObserver,
  options: { droppedEntriesCount: number },
) => unknown

interface ObserveOptions {
  entryTypes?: Iterable<unknown>
  type?: unknown
  buffered?: unknown
}

const SUPPORTED = Object.freeze(['mark', 'measure'])
const observers = new Set<PerformanceObserver>()
let observe: (observer: PerformanceObserver, entry: PerformanceEntry) => void

export class PerformanceObserver {
  readonly #callback: Callback
  #types = new Set<string>()
  #form: 'entryTypes' | 'type' | undefined
  #waiting: PerformanceEntry[] = []
  #isScheduled = false

  static {
    observe = (observer, entry) => {
      if (observer.#types.has(entry.entryType)) observer.#take([entry])
    }
  }

  constructor(callback: Callback) {
    if (typeof callback !== 'function') throw new TypeError('A PerformanceObserver needs a function.')
    this.#callback = callback
  }

  static get supportedEntryTypes(): readonly string[] {
    return SUPPORTED
  }

  observe(options: ObserveOptions = {}): void {
    const { entryTypes, type, buffered } = optionsOf<ObserveOptions>(options, 'The options of an observer')
    if (entryTypes === undefined && type === undefined) throw new TypeError('An observer needs entryTypes or a type.')
    if (entryTypes !== undefined && (typeof entryTypes !== 'object' || entryTypes === null)) {
      throw new TypeError('entryTypes must be a list.')
    }
    if (entryTypes !== undefined && (type !== undefined || buffered !== undefined)) {
      throw new TypeError('An observer has either entryTypes or a type.')
    }
    const form = entryTypes === undefined ? 'type' : 'entryTypes'
    if (this.#form !== undefined && this.#form !== form) {
      throw new DOMException('An observer cannot have entryTypes at one time and a type at another.', 'InvalidModificationError')
    }
    this.#form = form
    if (entryTypes !== undefined) {
      const known = Array.from(entryTypes, String).filter((one) => SUPPORTED.includes(one))
      if (known.length === 0) return
      this.#types = new Set(known)
    } else {
      const one = toText(type)
      if (!SUPPORTED.includes(one)) return
      this.#types.add(one)
      if (buffered === true) this.#take(byType(entries, one))
    }
    observers.add(this)
  }

  disconnect(): void {
    observers.delete(this)
    this.#types.clear()
    this.#waiting = []
    this.#form = undefined
  }

  takeRecords(): PerformanceEntry[] {
    const taken = this.#waiting
    this.#waiting = []
    return taken
  }

  #take(found: readonly PerformanceEntry[]): void {
    this.#waiting.push(...found)
    if (this.#isScheduled || this.#waiting.length === 0) return
    this.#isScheduled = true
    setTimeout(() => this.#deliver(), 0)
  }

  #deliver(): void {
    this.#isScheduled = false
    const list = this.takeRecords()
    if (list.length === 0) return
    Reflect.apply(this.#callback, this, [new PerformanceObserverEntryList(INTERNAL, list), this, { droppedEntriesCount: 0 }])
  }
}

asInterfaces({ PerformanceEntry, PerformanceMark, PerformanceMeasure, PerformanceObserver, PerformanceObserverEntryList })
