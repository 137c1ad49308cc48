export interface EvictionCandidate {
  readonly key: string
  readonly leases: number
  /** Whether work goes on in it that nobody waits for. */
  readonly hasBackgroundWork: boolean
}

/**
 * Which isolate leaves when there are more than `maxCount`: the least recently used one that nobody holds, if there is one without work in
 * the background, else with. Undefined if there is room, or every isolate is in use: a busy isolate never leaves, so the count may stand
 * above the limit for a while.
 * @param candidates from the least to the most recently used
 */
export function chooseEvicted(candidates: Iterable<EvictionCandidate>, count: number, maxCount: number): string | undefined {
  if (count <= maxCount) return undefined
  let second: string | undefined
  for (const { key, leases, hasBackgroundWork } of candidates) {
    if (leases > 0) continue
    if (!hasBackgroundWork) return key
    second ??= key
  }
  return second
}
