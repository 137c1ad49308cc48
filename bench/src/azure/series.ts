/** A value over time, evenly or not. */
export interface Point {
  readonly atMs: number
  readonly value: number
}

/**
 * Pearson's correlation of two series of the same length, from -1 to 1; undefined if one of them never changes.
 * @see https://en.wikipedia.org/wiki/Pearson_correlation_coefficient
 */
export function correlation(a: readonly number[], b: readonly number[]): number | undefined {
  if (isConstant(a) || isConstant(b)) return undefined
  const [meanA, meanB] = [mean(a), mean(b)]
  const product = (x: readonly number[], meanX: number, y: readonly number[], meanY: number): number =>
    x.reduce((sum, value, index) => sum + (value - meanX) * ((y[index] ?? Number.NaN) - meanY), 0)
  return product(a, meanA, b, meanB) / Math.sqrt(product(a, meanA, a, meanA) * product(b, meanB, b, meanB))
}

function isConstant(values: readonly number[]): boolean {
  return values.every((value) => value === values[0])
}

/** At each point the mean of the points within `windowMs` before it, itself included. */
export function trailingMean(points: readonly Point[], windowMs: number): Point[] {
  let from = 0
  let sum = 0
  return points.map(({ atMs, value }, index) => {
    sum += value
    while ((points[from]?.atMs ?? atMs) < atMs - windowMs) sum -= points[from++]?.value ?? 0
    return { atMs, value: sum / (index - from + 1) }
  })
}

/** At most `count` points: the mean of each of so many stretches of time that has any. */
export function thinned(points: readonly Point[], count: number): Point[] {
  const [first, last] = [points[0]?.atMs ?? 0, points.at(-1)?.atMs ?? 0]
  const stretchMs = (last - first) / count || 1
  return [...Map.groupBy(points, ({ atMs }) => Math.min(count - 1, Math.floor((atMs - first) / stretchMs))).values()].map(
    (some) => ({
      atMs: mean(some.map(({ atMs }) => atMs)),
      value: mean(some.map(({ value }) => value)),
    }),
  )
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
