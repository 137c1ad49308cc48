// oxlint-disable typescript/unbound-method -- taking methods off their objects is the point
import { dateNow, getterOf, SafeFloat64Array, SafeNumber } from '../primordials.ts'

// Takes the clock while nobody can have changed it. An isolate has no other that is finer than a millisecond. It costs 0.1 to 0.6 ms, which is why
// isolates are made before they are needed.
const readInstant = Temporal.Now.instant
const instantFromMs = Temporal.Instant.fromEpochMilliseconds
const epochNanoseconds = getterOf<bigint>(Temporal.Instant.prototype, 'epochNanoseconds')

let bootedNs = 0n
let originMs = 0
let isRunning = false
// Times are kept in arrays, so that keeping one makes no garbage.
/** When the entry that runs began, in ms of the epoch; the same, in ms since the boot, but never before that of an earlier entry. */
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
 * The time that user code sees, in ms since the context was booted; never goes back, also when the machine's clock is set back. It has a fraction
 * if the clock runs; one that stands is no finer than a millisecond, so that entries cannot be timed by each other.
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
