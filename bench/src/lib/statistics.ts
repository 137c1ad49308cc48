/** The middle value; the mean of the two middle ones if the count is even. @throws RangeError if there are no values */
export function median(values: readonly number[]): number {
  const sorted = sortedNumbers(values)
  const middle = sorted.length / 2
  return Number.isInteger(middle) ? ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2 : (sorted[Math.floor(middle)] ?? 0)
}

/**
 * Nearest rank: the smallest value that at least `percent` % of the values do not exceed. It is always one of the values.
 * @throws RangeError if there are no values or `percent` is not from 0 to 100
 */
export function percentile(values: readonly number[], percent: number): number {
  if (!(percent >= 0 && percent <= 100)) throw new RangeError(`A percentile is from 0 to 100, not ${percent}.`)
  const sorted = sortedNumbers(values)
  // Multiplied first: 0.07 * 100 is more than 7, and one rank too many.
  const rank = Math.ceil((percent * sorted.length) / 100)
  return sorted[Math.max(rank, 1) - 1] ?? 0
}

function sortedNumbers(values: readonly number[]): number[] {
  if (values.length === 0) throw new RangeError('There are no values.')
  return values.toSorted((a, b) => a - b)
}
