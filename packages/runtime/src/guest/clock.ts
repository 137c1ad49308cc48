import { dateNow, getterOf, SafeFloat64Array, SafeNumber } from './primordials.ts'

let instant: () => object
let epochNanoseconds: (instant: object) => bigint
let bootedNs = 0n
let origin = 0
/** The latest time that was read, in ns since the boot; in an array, so that keeping it makes no garbage. */
const latestNs = new SafeFloat64Array(1)

/**
 * Takes the clock while nobody can have changed it, and sets where `performance.now` counts from. An isolate has no other clock that is
 * finer than a millisecond. It costs 0.3 to 0.6 ms, which is why isolates are made before they are needed.
 */
export function startClock(): void {
  instant = Temporal.Now.instant
  epochNanoseconds = getterOf<bigint>(Temporal.Instant.prototype, 'epochNanoseconds')
  bootedNs = epochNanoseconds(instant())
  origin = dateNow()
}

/** When the context was booted, in ms of the epoch. */
export function timeOrigin(): number {
  return origin
}

/** Nanoseconds since the context was booted; never goes back, also when the machine's clock is set back. */
export function clockNs(): number {
  const ns = SafeNumber(epochNanoseconds(instant()) - bootedNs)
  if (ns > latestNs[0]!) latestNs[0] = ns
  return latestNs[0]!
}

/** Milliseconds since the context was booted, with a fraction. */
export function now(): number {
  return clockNs() / 1e6
}
