// oxlint-disable typescript/unbound-method -- taking methods off their objects is the point
import { lookLike } from '../native-look.ts'
import { defineProperty, getOwnPropertyDescriptor, getterOf, SafeWeakMap, setHidden, uncurryThis } from '../primordials.ts'
import { epochMs } from './clock.ts'

const { prototype } = Intl.DateTimeFormat

type Format = (date?: unknown) => string

/**
 * Has `Intl.DateTimeFormat` take the time from the guest's clock where it is given no date (ECMA-402, sections 11.3.3, 11.3.4 and 11.5.4). The other
 * methods refuse to be called without one.
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
