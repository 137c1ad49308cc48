// oxlint-disable typescript/unbound-method -- taking methods off their objects is the point
import {
  apply,
  construct,
  deleteProperty,
  getPrototypeOf,
  iteratorSymbol,
  ownValue,
  SafeWeakMap,
  setHidden,
} from '../language/primordials.ts'
import { lookLike, takePlaceOf } from '../language/substitutes.ts'
import { toText } from '../language/values.ts'
import { keepFor, reserve, shared } from './reservation.ts'

const KIB = 1024
const REFUSAL = 'A formatter does not fit into what is left of the memory limit'

/**
 * What an instance holds outside of V8's heap at most, in bytes. Measured with Node.js 26 as resident memory for each of 2,000
 * that were kept: 1.7 to 8.8 KiB, but for formats of dates 27 to 146 KiB, and 53 more when ranges are formatted.
 */
const SMALL = 4 * KIB
const DATES = 160 * KIB
const CLASSES: ReadonlyArray<{ readonly name: string; readonly bytes: number }> = [
  { name: 'Collator', bytes: SMALL },
  { name: 'DateTimeFormat', bytes: DATES },
  { name: 'DisplayNames', bytes: SMALL },
  { name: 'DurationFormat', bytes: SMALL },
  { name: 'ListFormat', bytes: SMALL },
  { name: 'Locale', bytes: SMALL },
  { name: 'NumberFormat', bytes: SMALL },
  { name: 'PluralRules', bytes: 8 * KIB },
  { name: 'RelativeTimeFormat', bytes: 12 * KIB },
  { name: 'Segmenter', bytes: 8 * KIB },
]

/** A method that makes such an object, and mostly uses it once and leaves it to the garbage collector, with what it holds. */
interface OneOff {
  readonly prototype: object
  readonly name: string
  readonly bytes: number
  /** Where its arguments name the locale; the options come behind it. V8 keeps the last formatter of a locale without options. */
  readonly localeAt?: number
}

const ONE_OFFS: readonly OneOff[] = [
  { prototype: Date.prototype, name: 'toLocaleString', bytes: DATES, localeAt: 0 },
  { prototype: Date.prototype, name: 'toLocaleDateString', bytes: DATES, localeAt: 0 },
  { prototype: Date.prototype, name: 'toLocaleTimeString', bytes: DATES, localeAt: 0 },
  { prototype: Number.prototype, name: 'toLocaleString', bytes: SMALL, localeAt: 0 },
  { prototype: BigInt.prototype, name: 'toLocaleString', bytes: SMALL, localeAt: 0 },
  { prototype: String.prototype, name: 'localeCompare', bytes: SMALL, localeAt: 1 },
  { prototype: Intl.Locale.prototype, name: 'maximize', bytes: SMALL },
  { prototype: Intl.Locale.prototype, name: 'minimize', bytes: SMALL },
  { prototype: Temporal.Duration.prototype, name: 'toLocaleString', bytes: SMALL },
  { prototype: Temporal.Instant.prototype, name: 'toLocaleString', bytes: DATES },
  { prototype: Temporal.PlainDate.prototype, name: 'toLocaleString', bytes: DATES },
  { prototype: Temporal.PlainDateTime.prototype, name: 'toLocaleString', bytes: DATES },
  { prototype: Temporal.PlainMonthDay.prototype, name: 'toLocaleString', bytes: DATES },
  { prototype: Temporal.PlainTime.prototype, name: 'toLocaleString', bytes: DATES },
  { prototype: Temporal.PlainYearMonth.prototype, name: 'toLocaleString', bytes: DATES },
  { prototype: Temporal.ZonedDateTime.prototype, name: 'toLocaleString', bytes: DATES },
]

const intl = Intl
const segmenter = Intl.Segmenter.prototype as unknown as { segment: Method }

type Constructor = new (...args: unknown[]) => object
type Method = (this: unknown, ...args: unknown[]) => unknown

/**
 * Has what `Intl` makes count against the memory limit. Its parts belong to a library that takes memory from the system. V8 knows
 * nothing of that, so it neither collects them in time nor ends who hoards them. All is the same in all else.
 */
export function installIntl(): void {
  // V8's own, which no standard knows and Node.js does not have either.
  deleteProperty(intl, 'v8BreakIterator')
  for (let index = 0; index < CLASSES.length; index++) installClass(CLASSES[index]!)
  installSegment()
  for (let index = 0; index < ONE_OFFS.length; index++) installOneOff(ONE_OFFS[index]!)
}

function installClass({ name, bytes }: (typeof CLASSES)[number]): void {
  const Native = ownValue(intl, name) as Constructor
  const next = shared(bytes, REFUSAL)
  function Counted(this: unknown, ...args: unknown[]): object {
    // Some may be called without `new`; the others refuse that themselves.
    const made = (new.target === undefined ? apply(Native, this, args) : construct(Native, args, new.target)) as object
    keepFor(made, next())
    return made
  }
  takePlaceOf(Counted, Native)
  setHidden(intl, name, Counted)
}

/** A text that is to be cut has a copy outside of the heap, and so has each of its iterators. */
function installSegment(): void {
  const native = segmenter.segment
  const bytesOf = new SafeWeakMap<object, number>()
  let isIteratorCounted = false
  const { segment } = {
    segment(this: unknown, text: unknown): object {
      const string = toText(text)
      const segments = apply(native, this, [string]) as object
      const bytes = SMALL + 2 * string.length
      bytesOf.set(segments, bytes)
      keepFor(segments, reserve(bytes, REFUSAL))
      // Their class is nowhere to be had but from one of them, and to make one takes long.
      if (!isIteratorCounted) {
        isIteratorCounted = true
        installSegmentIterator(getPrototypeOf(segments)!, bytesOf)
      }
      return segments
    },
  }
  setHidden(segmenter, 'segment', lookLike(segment, native))
}

function installSegmentIterator(prototype: object, bytesOf: SafeWeakMap<object, number>): void {
  const native = ownValue(prototype, iteratorSymbol) as Method
  const counted = {
    iterate(this: object): object {
      const iterator = apply(native, this, []) as object
      keepFor(iterator, reserve(bytesOf.get(this) ?? SMALL, REFUSAL))
      return iterator
    },
  }
  setHidden(prototype, iteratorSymbol, lookLike(counted.iterate, native))
}

function installOneOff({ prototype, name, bytes, localeAt }: OneOff): void {
  const native = ownValue(prototype, name) as Method
  const next = shared(bytes, REFUSAL)
  let kept: unknown
  const { method } = {
    method(this: unknown, ...args: unknown[]): unknown {
      const locale = localeAt === undefined ? undefined : args[localeAt]
      const isKept = localeAt !== undefined && locale === kept && args[localeAt + 1] === undefined && typeof locale !== 'object'
      kept = locale
      // It counts until the next garbage collection, as what is left behind does.
      const reservation = isKept ? undefined : next()
      const result = apply(native, this, args)
      if (reservation !== undefined && typeof result === 'object' && result !== null) keepFor(result, reservation)
      return result
    },
  }
  setHidden(prototype, name, lookLike(method, native))
}
