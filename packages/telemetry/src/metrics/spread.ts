/** How figures lie around their mean. */
export interface Spread {
  readonly mean: number
  /** Of the population: the root of the mean of the squared distances, divided by n and not by n - 1. */
  readonly stddev: number
}

/** 0 of nothing. */
export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) return { mean: 0, stddev: 0 }
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  // In two passes: the mean of the squares minus the square of the mean loses what matters when counts are large and close together.
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length
  return { mean, stddev: Math.sqrt(variance) }
}
