import { USAGE_GROUPS, type UsageGroup } from '@carpool/core'
import { type Command, InvalidArgumentError, Option } from 'commander'

/** Reads a whole number within a range. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
  }
}

/** Collects `KEY=value` from an option that may be repeated. */
export function variables(text: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const [, key, value] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(text) ?? []
  if (key === undefined || value === undefined)
    throw new InvalidArgumentError('It must have the form KEY=value, with a key of letters, digits and "_".')
  return { ...before, [key]: value }
}

/** Collects `name: value` from an option that may be repeated. */
export function headers(
  text: string,
  before: ReadonlyArray<readonly [string, string]> = [],
): ReadonlyArray<readonly [string, string]> {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:\s*([^\r\n]*)$/.exec(text) ?? []
  if (name === undefined || value === undefined) throw new InvalidArgumentError('It must have the form "name: value".')
  return [...before, [name.toLowerCase(), value.trimEnd()]]
}

/** Collects the values of an option that may be repeated. */
export function texts(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

export interface GroupOption {
  readonly by?: UsageGroup
}

export function addGroupOption(command: Command, help: string): void {
  command.addOption(new Option('--by <group>', help).choices(USAGE_GROUPS))
}

export interface OwnerOption {
  readonly owner?: string
}

export function addOwnerOption(command: Command): void {
  command.option('--owner <owner>', 'for which owner; only with an admin token (default: the one of the token)')
}

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A date, or a date and a time, with an offset from UTC or without. */
const ISO_TIME = /^(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?$/i

export interface SinceOption {
  /** In ms of the epoch. */
  readonly since?: number
}

export function addSinceOption(command: Command, help: string): void {
  command.addOption(
    new Option('--since <when>', `${help}: 90m, 24h, 7d, or an ISO 8601 time`).argParser((text) => parseSince(text)),
  )
}

/**
 * Reads a length of time before now, or an ISO 8601 time: a date alone begins in UTC, a time without an offset is one of this
 * machine.
 * @returns ms of the epoch, never negative
 */
export function parseSince(text: string, now: () => number = Date.now): number {
  const [, count, unit] = /^(\d{1,9})([mhd])$/.exec(text) ?? []
  const timeMs = count === undefined ? parseTime(text) : now() - Number(count) * (UNIT_MS[unit ?? ''] ?? Number.NaN)
  if (Number.isNaN(timeMs)) {
    throw new InvalidArgumentError(
      'It must be a number of minutes, hours or days such as 90m, 24h or 7d, or an ISO 8601 time such as 2026-11-21T08:00:00Z.',
    )
  }
  return Math.max(0, timeMs)
}

function parseTime(text: string): number {
  const [, day] = ISO_TIME.exec(text) ?? []
  // 31 February would be read as another day.
  if (day === undefined || new Date(Date.parse(day) || 0).toISOString().slice(0, 10) !== day) return Number.NaN
  return Date.parse(text)
}
