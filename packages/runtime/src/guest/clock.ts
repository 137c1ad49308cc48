// oxlint-disable typescript/unbound-method -- taking methods off their objects is the point
import {
  construct,
  dateNow,
  dateToString,
  defineProperty,
  getOwnPropertyDescriptor,
  getterOf,
  SafeDate,
  SafeFloat64Array,
  SafeNumber,
  SafeWeakMap,
  setHidden,
  uncurryThis,
} from './language/primordials.ts'
import { lookLike, takePlaceOf } from './language/substitutes.ts'

// Taken while nobody can have changed them. An isolate has no other clock that is finer than a millisecond. The first look at
// Temporal costs 0.1 to 0.6 ms and 170 KB: one reason why isolates are made before they are needed.
const readInstant = Temporal.Now.instant
const instantFromMs = Temporal.Instant.fromEpochMilliseconds
const epochNanoseconds = getterOf<bigint>(Temporal.Instant.prototype, 'epochNanoseconds')

let bootedNs = 0n
let originMs = 0
let isRunning = false
// Times are kept in arrays, so that keeping one makes no garbage.
/** When the entry that runs began: in ms of the epoch; in ms since the boot, but never before an earlier entry. */
const entry = new SafeFloat64Array(2)
/** The latest time that was read, in ns since the boot. */
const latestNs = new SafeFloat64Array(1)

/** Sets where `performance.now` counts from. */
export function startClock(): void {
  bootedNs = epochNanoseconds(readInstant())
  originMs = dateNow()
  markClock()
}

/** Lets the clock that user code sees run on within an entry. Else it stands at the time at which the entry began. */
export function letClockRun(): void {
  isRunning = true
}

/** An entry begins: the time of it is that of all its code. */
export function markClock(): void {
  const nowMs = dateNow()
  entry[0] = nowMs
  // The machine's clock may be set back.
  if (nowMs - originMs > entry[1]!) entry[1] = nowMs - originMs
}

/** When the entry that runs began, in ms of the epoch. */
export function entryMs(): number {
  return entry[0]!
}

/** The time that user code sees, in whole ms of the epoch. */
export function epochMs(): number {
  return isRunning ? dateNow() : entry[0]!
}

/** The same as an instant of Temporal. */
export function instant(): Temporal.Instant {
  return isRunning ? readInstant() : instantFromMs(entry[0]!)
}

/** When the context was booted, in ms of the epoch. */
export function timeOrigin(): number {
  return originMs
}

/**
 * The time that user code sees, in ms since the context was booted. It never goes back, also when the machine's clock is set
 * back. It has a fraction if the clock runs. One that stands is no finer than a millisecond, so that entries cannot be timed by
 * each other.
 */
export function now(): number {
  return isRunning ? clockNs() / 1e6 : entry[1]!
}

/** Nanoseconds since the context was booted, for the runtime alone: this clock never stands. It never goes back. */
export function clockNs(): number {
  const ns = SafeNumber(epochNanoseconds(readInstant()) - bootedNs)
  if (ns > latestNs[0]!) latestNs[0] = ns
  return latestNs[0]!
}

/**
 * Replaces `Date` by one that takes the time from the guest's clock and is the same in all else. What reads a clock is `Date()`,
 * `new Date()` and `Date.now()` (ECMAScript, sections 21.4.2.1 and 21.4.3.1).
 */
export function installDate(target: object): void {
  function GuestDate(...args: unknown[]): unknown {
    if (new.target === undefined) return dateToString(new SafeDate(epochMs()))
    // For the most usual calls, which this makes several times faster.
    if (new.target === GuestDate) {
      if (args.length === 0) return new SafeDate(epochMs())
      if (args.length === 1) return new SafeDate(args[0] as number)
    }
    // The instance gets its prototype from the class that `new` was called on.
    return construct(SafeDate, args.length === 0 ? [epochMs()] : args, new.target)
  }
  const { now } = { now: (): number => epochMs() }
  takePlaceOf(GuestDate, SafeDate)
  setHidden(GuestDate, 'now', lookLike(now, SafeDate.now))
  setHidden(target, 'Date', GuestDate)
}

const { Now } = Temporal
const { timeZoneId } = Now
const toZoned = uncurryThis(Temporal.Instant.prototype.toZonedDateTimeISO)
const toPlainDateTime = uncurryThis(Temporal.ZonedDateTime.prototype.toPlainDateTime)
const toPlainDate = uncurryThis(Temporal.ZonedDateTime.prototype.toPlainDate)
const toPlainTime = uncurryThis(Temporal.ZonedDateTime.prototype.toPlainTime)

/** Has `Temporal.Now` take the time from the guest's clock. The time zone stays the machine's. */
export function installTemporalNow(): void {
  const zoned = (timeZone?: string): Temporal.ZonedDateTime =>
    toZoned(instant(), timeZone === undefined ? timeZoneId() : timeZone)
  const methods = {
    instant: () => instant(),
    zonedDateTimeISO: zoned,
    plainDateTimeISO: (timeZone?: string) => toPlainDateTime(zoned(timeZone)),
    plainDateISO: (timeZone?: string) => toPlainDate(zoned(timeZone)),
    plainTimeISO: (timeZone?: string) => toPlainTime(zoned(timeZone)),
  }
  const names = ['instant', 'zonedDateTimeISO', 'plainDateTimeISO', 'plainDateISO', 'plainTimeISO'] as const
  for (let index = 0; index < names.length; index++) {
    const name = names[index]!
    setHidden(Now, name, lookLike(methods[name], Now[name]))
  }
}

const { prototype } = Intl.DateTimeFormat

type Format = (date?: unknown) => string

/**
 * Has `Intl.DateTimeFormat` take the time from the guest's clock where it is given no date (ECMA-402, sections 11.3.3, 11.3.4 and
 * 11.5.4). The other methods refuse to be called without one.
 */
export function installDateTimeFormat(): void {
  const formatToParts = uncurryThis(prototype.formatToParts as (this: unknown, date: unknown) => Intl.DateTimeFormatPart[])
  const formatOf = getterOf<Format>(prototype, 'format')
  const original = getOwnPropertyDescriptor(prototype, 'format')!.get!
  /** By the function that V8 made for a formatter, which is the same each time. */
  const formats = new SafeWeakMap<Format, Format>()

  const substitutes = {
    formatToParts(this: unknown, date?: unknown): Intl.DateTimeFormatPart[] {
      return formatToParts(this, date === undefined ? epochMs() : date)
    },
    format(this: unknown): Format {
      const format = formatOf(this)
      const known = formats.get(format)
      if (known !== undefined) return known
      const made = lookLike((date?: unknown) => format(date === undefined ? epochMs() : date), format)
      formats.set(format, made)
      return made
    },
  }
  setHidden(prototype, 'formatToParts', lookLike(substitutes.formatToParts, prototype.formatToParts))
  defineProperty(prototype, 'format', { get: lookLike(substitutes.format, original) })
}
