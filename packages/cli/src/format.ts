import type { Writable } from 'node:stream'
import { stripVTControlCharacters, styleText } from 'node:util'

export interface Column<Row> {
  readonly title: string
  readonly align?: 'left' | 'right'
  text(row: Row): string
}

/** Rows as an aligned text table with a heading; coloured if `stream` shows colours. */
export function renderTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], stream: Writable): string {
  const cells = rows.map((row) => columns.map((column) => stripVTControlCharacters(column.text(row))))
  const widths = columns.map(({ title }, index) => Math.max(title.length, ...cells.map((line) => line[index]?.length ?? 0)))
  const toLine = (line: readonly string[]) =>
    columns
      .map(({ align }, index) =>
        align === 'right' ? line[index]?.padStart(widths[index] ?? 0) : line[index]?.padEnd(widths[index] ?? 0),
      )
      .join('  ')
      .trimEnd()
  const heading = styleText('bold', toLine(columns.map(({ title }) => title)), { stream })
  return [heading, ...cells.map(toLine)].join('\n')
}

/**
 * What a terminal would obey rather than show, and what would change the order or the look of what is around it: control
 * characters but for tabs and ends of lines, marks of direction and of formatting, separators of lines, halves of surrogate
 * pairs.
 */
const UNSEEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/**
 * A text that somebody else wrote, safe to print on a terminal: what cannot be seen stands there as an escape, such as
 * `\u001b`.
 */
export function visibleText(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(UNSEEN, escape)
}

function escape(character: string): string {
  const code = character.codePointAt(0) ?? 0
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`
}

const SIGNIFICANT_DIGITS = 3

/** Each unit with how many µs it has, and below which number of µs it is used. */
const DURATION_UNITS = [
  { name: 'ms', us: 1000, belowUs: 1e6 },
  { name: 's', us: 1e6, belowUs: 60e6 },
  { name: 'min', us: 60e6, belowUs: 3600e6 },
  { name: 'h', us: 3600e6, belowUs: Number.POSITIVE_INFINITY },
] as const

const BYTE_UNITS = ['KiB', 'MiB', 'GiB', 'TiB'] as const

/** A time for people: `0 ms`, `0.812 ms`, `12.3 ms`, `2 s`, `1.5 h`. */
export function formatDuration(us: number): string {
  // Rounded first: what is shown as 1000 ms is 1 s.
  const shownUs = Number(us.toPrecision(SIGNIFICANT_DIGITS))
  const unit = DURATION_UNITS.find(({ belowUs }) => shownUs < belowUs) ?? DURATION_UNITS[0]
  return `${rounded(shownUs / unit.us)} ${unit.name}`
}

/** A size for people: `512 B`, `1.5 KiB`, `12.3 MiB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  let value = bytes / 1024
  let unit = 0
  while (Math.round(value) >= 1024 && unit < BYTE_UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${rounded(value)} ${BYTE_UNITS[unit]}`
}

/** A part of a whole for people: `97.3%`; `-` if there is no whole. */
export function formatShare(part: number, whole: number): string {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)}%` : '-'
}

/** A quantity of any unit, without an exponent. */
export function formatQuantity(value: number): string {
  return new Intl.NumberFormat('en-US', { maximumSignificantDigits: 4 }).format(value)
}

/** Three digits, and all before the point. */
function rounded(value: number): string {
  return String(value >= 100 ? Math.round(value) : Number(value.toPrecision(SIGNIFICANT_DIGITS)))
}
