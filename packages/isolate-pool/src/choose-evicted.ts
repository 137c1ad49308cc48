export interface EvictionCandidate {
  readonly key: string
  readonly leases: number
}

/**
 * Which isolate leaves when there are more than `maxCount`: the least recently used one that nobody holds. Undefined if there is room, or
 * every isolate is in use: a busy isolate never leaves, so the count may stand above the limit for a while.
 * @param candidates from the least to the most recently used
 */
export function chooseEvicted(candidates: Iterable<EvictionCandidate>, count: number, maxCount: number): string | undefined {
  if (count <= maxCount) return undefined
  for (const { key, leases } of candidates) if (leases === 0) return key
  return undefined
}
