export interface HostLoad {
  readonly inFlight: number
  /** Whether the host has the revision's code. */
  readonly hasRevision: boolean
}

/** How many invocations more than the idlest a host may have before its having the code no longer makes it the better choice. */
const CODE_LEAD = 8

/**
 * Which host runs an invocation: the one with the fewest in flight, where one that has the revision's code may be ahead by
 * {@link CODE_LEAD}. Undefined if there is none.
 */
export function chooseHost<H extends HostLoad>(hosts: readonly H[]): H | undefined {
  const loadOf = ({ inFlight, hasRevision }: H): number => inFlight + (hasRevision ? 0 : CODE_LEAD)
  let chosen: H | undefined
  for (const host of hosts) {
    if (chosen === undefined || loadOf(host) < loadOf(chosen)) chosen = host
  }
  return chosen
}
