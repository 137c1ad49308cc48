export interface HostLoad {
  readonly inFlight: number
  /** Whether the host has the revision's code. */
  readonly hasRevision: boolean
}

/**
 * Which host runs an invocation: of those that have the revision's code the one with the fewest invocations in flight, else the one with
 * the fewest of all. Undefined if there is none.
 */
export function chooseHost<H extends HostLoad>(hosts: readonly H[]): H | undefined {
  let chosen: H | undefined
  for (const host of hosts) {
    if (chosen === undefined || isBetter(host, chosen)) chosen = host
  }
  return chosen
}

function isBetter(one: HostLoad, other: HostLoad): boolean {
  if (one.hasRevision !== other.hasRevision) return one.hasRevision
  return one.inFlight < other.inFlight
}
