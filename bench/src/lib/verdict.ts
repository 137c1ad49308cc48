/** A claim about a result. A `demand` that is not met makes the bench fail; an `aim` is only reported. */
export interface Verdict {
  readonly kind: 'demand' | 'aim'
  readonly claim: string
  readonly isMet: boolean
  /** What was measured against what was wanted. */
  readonly detail: string
}

export function verdictLine({ kind, claim, isMet, detail }: Verdict): string {
  const mark = isMet ? 'ok  ' : kind === 'demand' ? 'FAIL' : 'miss'
  return `${mark}  ${claim}: ${detail}`
}

/**
 * A claim that a measured value is no more than a limit; says by how much it is over. @param format writes the values with
 * their unit
 */
export function atMost(
  kind: Verdict['kind'],
  claim: string,
  value: number,
  limit: number,
  format: (value: number) => string,
): Verdict {
  return compare(kind, claim, value <= limit, 'at most', { value, limit, format })
}

/** The same for a value that is to be no less than a limit. */
export function atLeast(
  kind: Verdict['kind'],
  claim: string,
  value: number,
  limit: number,
  format: (value: number) => string,
): Verdict {
  return compare(kind, claim, value >= limit, 'at least', { value, limit, format })
}

interface Comparison {
  readonly value: number
  readonly limit: number
  readonly format: (value: number) => string
}

function compare(
  kind: Verdict['kind'],
  claim: string,
  isMet: boolean,
  relation: string,
  { value, limit, format }: Comparison,
): Verdict {
  const wanted = `${relation} ${format(limit)}`
  const miss = isMet ? '' : `, off by ${format(Math.abs(value - limit))}`
  return { kind, claim, isMet, detail: `${format(value)} (${wanted})${miss}` }
}
