// oxlint-disable typescript/unbound-method -- taking methods off their objects is the point
import { lookLike } from '../native-look.ts'
import { setHidden, uncurryThis } from '../primordials.ts'
import { instant } from './clock.ts'

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
