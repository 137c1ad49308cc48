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
