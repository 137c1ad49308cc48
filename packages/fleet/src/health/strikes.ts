/**
 * Strikes: what functions have on their account that harmed host processes. Two of them, and a function gets a process of its own; four, and it is
 * disabled until an operator says otherwise.
 */
export interface Strike {
  readonly atMs: number
  /** 1 if it was this function and no other; 1/n if it was one of n, and less than 1 if it may have been nobody. */
  readonly share: number
  /** Whether the function was by itself in the process. Only then is it beyond doubt: in a shared one it depends on what the process says of itself. */
  readonly wasAlone: boolean
}

export interface StrikePolicy {
  /** How long a strike counts, in ms. */
  readonly windowMs: number
  /** Strikes from which on a function runs in a process of its own. */
  readonly quarantineAfter: number
  /** Strikes from which on it is disabled; those that are more than `quarantineAfter`, and at least one, must have been by itself. */
  readonly disableAfter: number
}

/** How a function stands. */
export type Standing = 'free' | 'quarantined' | 'disabled'

const UNCERTAIN_SHARE = 0.5
/** Shares of a third and the like must add up to what they are shares of. */
const EPSILON = 1e-9

/** How a function with these strikes stands now. */
export function standingOf(
  strikes: readonly Strike[],
  nowMs: number,
  { windowMs, quarantineAfter, disableAfter }: StrikePolicy,
): Standing {
  const counted = strikes.filter(({ atMs }) => nowMs - atMs < windowMs)
  const sum = counted.reduce((total, { share }) => total + share, EPSILON)
  const alone = counted.filter(({ wasAlone }) => wasAlone).length
  // Who was only near when it happened must not be switched off for it: by itself it turns out who it was.
  if (sum >= disableAfter && alone >= Math.max(1, disableAfter - quarantineAfter)) return 'disabled'
  return sum >= quarantineAfter ? 'quarantined' : 'free'
}

/** Who may have harmed a process. */
export interface Blame {
  readonly suspects: readonly string[]
  /** Whether it must have been one of them. */
  readonly isCertain: boolean
  /** Whether the one suspect was by itself in the process. */
  readonly wasAlone: boolean
}

/** The strikes of all functions. What no longer counts is forgotten. */
export class Strikes {
  readonly #policy: StrikePolicy
  readonly #strikes = new Map<string, Strike[]>()

  constructor(policy: StrikePolicy) {
    this.#policy = policy
  }

  /** A process was harmed. @returns how each suspect stands now */
  add({ suspects, isCertain, wasAlone }: Blame, nowMs: number): ReadonlyMap<string, Standing> {
    this.#forgetOld(nowMs)
    const share = isCertain || wasAlone ? 1 / suspects.length : Math.min(1 / suspects.length, UNCERTAIN_SHARE)
    const strike = { atMs: nowMs, share, wasAlone: wasAlone && suspects.length === 1 }
    for (const name of suspects) this.#strikes.set(name, [...(this.#strikes.get(name) ?? []), strike])
    return new Map(suspects.map((name) => [name, this.standing(name, nowMs)]))
  }

  standing(functionName: string, nowMs: number): Standing {
    const strikes = this.#strikes.get(functionName)
    return strikes === undefined ? 'free' : standingOf(strikes, nowMs, this.#policy)
  }

  /** How many strikes count, shares added up. */
  count(functionName: string, nowMs: number): number {
    const strikes = this.#strikes.get(functionName) ?? []
    return strikes.reduce((sum, { atMs, share }) => (nowMs - atMs < this.#policy.windowMs ? sum + share : sum), 0)
  }

  /** An operator has said that it is well again, or its name belongs to somebody else. */
  clear(functionName: string): void {
    this.#strikes.delete(functionName)
  }

  #forgetOld(nowMs: number): void {
    for (const [name, strikes] of this.#strikes) {
      const counted = strikes.filter(({ atMs }) => nowMs - atMs < this.#policy.windowMs)
      if (counted.length === 0) this.#strikes.delete(name)
      else this.#strikes.set(name, counted)
    }
  }
}
