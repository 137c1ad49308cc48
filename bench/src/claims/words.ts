/** Numbers as the texts have them. */

const WORDS = ['none', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten']

/** 0 to 10 in words, what is more in digits. */
export function inWords(count: number): string {
  return WORDS[count] ?? whole(count)
}

/** 12345 as `12,345`. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

/** Two significant digits below 10, whole numbers above. */
export function short(value: number): string {
  const size = Math.abs(value)
  return size >= 10 ? whole(value) : size >= 1 ? value.toFixed(1) : size === 0 ? '0' : value.toPrecision(2)
}

export function ms(value: number): string {
  return value >= 1000 ? `${(value / 1000).toFixed(1)} s` : `${short(value)} ms`
}

export function seconds(valueMs: number): string {
  return `${(valueMs / 1000).toFixed(2)} s`
}

export function percent(share: number, digits = 1): string {
  return `${(100 * share).toFixed(digits)} %`
}

export function signed(share: number): string {
  return `${share < 0 ? '' : '+'}${percent(share)}`
}

export function ratio(value: number): string {
  return `${value.toFixed(2)}x`
}

export function megabytes(bytes: number): string {
  return `${short(bytes / 1e6)} MB`
}

/** `3 to 5 ms`, or `3 ms` if all are written alike. @param write a value with its unit */
export function range(values: readonly number[], write: (value: number) => string): string {
  const [least, most] = [write(Math.min(...values)), write(Math.max(...values))]
  if (least === most) return least
  const unit = / \S+$/.exec(most)?.[0] ?? ''
  return `${unit !== '' && least.endsWith(unit) ? least.slice(0, -unit.length) : least} to ${most}`
}

export function sum<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((total, item) => total + value(item), 0)
}

/** Calls of an end in a text such as `5 x 200, 3 x 503 saturated`; all of them without a pattern. */
export function callsIn(ends: string, pattern = /./): number {
  return sum(
    [...ends.matchAll(/(\d+) x ([^,]+)/g)].filter(([, , end = '']) => pattern.test(end)),
    ([, count]) => Number(count),
  )
}
