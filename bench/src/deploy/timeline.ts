/** When a deploy of a revision was sent and when it was confirmed; revisions are numbered in the order of their deploys. */
export interface Deployment {
  readonly revision: number
  readonly sentMs: number
  readonly confirmedMs: number
}

/** What one call of the load was answered with. */
export interface Observation {
  readonly startMs: number
  readonly endMs: number
  /** Undefined if the call failed. */
  readonly body: string | undefined
}

export type Judgement = 'good' | 'failed' | 'mixed' | 'stale' | 'early'

/**
 * Judges an answer against the deploys.
 * - `mixed`: its parts do not come from one revision, or are no revision numbers.
 * - `stale`: its revision was replaced, and the replacement confirmed, before the call started.
 * - `early`: its revision was sent only after the answer.
 */
export function judge({ startMs, endMs, body }: Observation, deployments: readonly Deployment[]): Judgement {
  if (body === undefined) return 'failed'
  const revision = revisionOf(body)
  if (revision === undefined) return 'mixed'
  if (deployments.some((other) => other.revision > revision && other.confirmedMs <= startMs)) return 'stale'
  const own = deployments.find((other) => other.revision === revision)
  return own === undefined || own.sentMs > endMs ? 'early' : 'good'
}

/** The revision that every part of an answer names; undefined if they differ. */
export function revisionOf(body: string): number | undefined {
  const [first = '', ...others] = body.split(' ')
  if (!/^\d+$/.test(first) || others.length !== 2 || others.some((part) => part !== first)) return undefined
  return Number(first)
}
