export interface EvictionCandidate {
  readonly leases: number
  /** Kept warm: it never leaves to make room. */
  readonly isPinned: boolean
  /** Whether work goes on in it that nobody waits for. */
  readonly hasBackgroundWork: boolean
  /** What its end gives back, in bytes. */
  readonly heapBytes: number
}

/** What has to leave: at least so many isolates that hold at least so many bytes. Default of each: 0. */
export interface EvictionGoal {
  readonly isolates?: number
  readonly bytes?: number
}

/**
 * Which isolates leave to make room: the least recently used first; those with work in the background after all without. One that is in use
 * or pinned never leaves, so what leaves may be less than the goal. No more leave than the goal takes: the last one is needed for it.
 * @param candidates from the least to the most recently used
 */
export function chooseEvicted<Candidate extends EvictionCandidate>(
  candidates: Iterable<Candidate>,
  { isolates = 0, bytes = 0 }: EvictionGoal,
): Candidate[] {
  const chosen: Candidate[] = []
  let chosenBytes = 0
  const isEnough = (): boolean => chosen.length >= isolates && chosenBytes >= bytes
  const choose = (candidate: Candidate): void => {
    chosen.push(candidate)
    chosenBytes += candidate.heapBytes
  }
  const withWork: Candidate[] = []
  if (isEnough()) return chosen
  for (const candidate of candidates) {
    if (candidate.leases > 0 || candidate.isPinned) continue
    if (candidate.hasBackgroundWork) withWork.push(candidate)
    else choose(candidate)
    if (isEnough()) return chosen
  }
  for (const candidate of withWork) {
    if (isEnough()) break
    choose(candidate)
  }
  return chosen
}
