import { InvalidArgumentError, Option, type Command } from 'commander'

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
 * Reads a length of time before now, or an ISO 8601 time: a date alone begins in UTC, a time without an offset is one of this machine.
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
