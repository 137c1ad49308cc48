/**
 * Strikes: one for each host process that a function has harmed, or a share of one if it may have been others. Two of them,
 * and the function gets a process of its own; four, and it is disabled until an operator enables it.
 */
export interface Strike {
  readonly atMs: number
  /** 1 if it was this function and no other; 1/n if it was one of n, and less than 1 if it may have been nobody. */
  readonly share: number
  /** Whether the function was by itself in the process. Only then is it beyond doubt: a shared process may report anything. */
  readonly wasAlone: boolean
}

export interface StrikePolicy {
  /** How long a strike counts, in ms. */
  readonly windowMs: number
  /** Strikes from which on a function runs in a process of its own. */
  readonly quarantineAfter: number
  /** Strikes from which on it is disabled. Those beyond `quarantineAfter`, at least one, must have been by itself. */
  readonly disableAfter: number
}

export type StrikeLevel = 'free' | 'quarantined' | 'disabled'

const UNCERTAIN_SHARE = 0.5
/** Shares of a third and the like must add up to what they are shares of. */
const EPSILON = 1e-9

/** The level of a function with these strikes. */
export function strikeLevelOf(
  strikes: readonly Strike[],
  nowMs: number,
  { windowMs, quarantineAfter, disableAfter }: StrikePolicy,
): StrikeLevel {
  const counted = strikes.filter(({ atMs }) => nowMs - atMs < windowMs)
  const sum = counted.reduce((total, { share }) => total + share, EPSILON)
  const alone = counted.filter(({ wasAlone }) => wasAlone).length
  // A function that was only near when it happened must not be disabled for it: in quarantine it turns out who it was.
  if (sum >= disableAfter && alone >= Math.max(1, disableAfter - quarantineAfter)) return 'disabled'
  return sum >= quarantineAfter ? 'quarantined' : 'free'
}

/** The harm that was done to a process, and the functions that may have done it. */
export interface AttributedHarm {
  readonly suspects: readonly string[]
  /** Whether it must have been one of them. */
  readonly isCertain: boolean
  /** Whether the one suspect was by itself in the process. */
  readonly wasAlone: boolean
}

/** The strikes of all functions. Strikes that no longer count are forgotten. */
export class Strikes {
  readonly #policy: StrikePolicy
  readonly #ownerOf: (functionName: string) => string | undefined
  readonly #records = new Map<string, { readonly owner: string | undefined; readonly strikes: readonly Strike[] }>()

  /** @param ownerOf whose a function is; undefined if there is none of that name */
  constructor(policy: StrikePolicy, ownerOf: (functionName: string) => string | undefined) {
    this.#policy = policy
    this.#ownerOf = ownerOf
  }

  /** Adds a strike, or a share of it, to each suspect. @returns the level of each from now on */
  add({ suspects, isCertain, wasAlone }: AttributedHarm, nowMs: number): ReadonlyMap<string, StrikeLevel> {
    this.#forgetOld(nowMs)
    const share = isCertain || wasAlone ? 1 / suspects.length : Math.min(1 / suspects.length, UNCERTAIN_SHARE)
    const strike = { atMs: nowMs, share, wasAlone: wasAlone && suspects.length === 1 }
    for (const name of suspects)
      this.#records.set(name, { owner: this.#ownerOf(name), strikes: [...this.#strikesOf(name), strike] })
    return new Map(suspects.map((name) => [name, this.level(name, nowMs)]))
  }

  level(functionName: string, nowMs: number): StrikeLevel {
    const record = this.#records.get(functionName)
    return record === undefined ? 'free' : strikeLevelOf(record.strikes, nowMs, this.#policy)
  }

  /** How many strikes count, shares added up. */
  count(functionName: string, nowMs: number): number {
    const { windowMs } = this.#policy
    return this.#strikesOf(functionName).reduce((sum, { atMs, share }) => (nowMs - atMs < windowMs ? sum + share : sum), 0)
  }

  clear(functionName: string): void {
    this.#records.delete(functionName)
  }

  /** Clears the strikes of a name that now belongs to somebody else: they were for a former owner's code. */
  clearIfOwnerChanged(functionName: string, owner: string): void {
    const record = this.#records.get(functionName)
    if (record !== undefined && record.owner !== owner) this.clear(functionName)
  }

  #strikesOf(functionName: string): readonly Strike[] {
    return this.#records.get(functionName)?.strikes ?? []
  }

  #forgetOld(nowMs: number): void {
    for (const [name, { owner, strikes }] of this.#records) {
      const counted = strikes.filter(({ atMs }) => nowMs - atMs < this.#policy.windowMs)
      if (counted.length === 0) this.#records.delete(name)
      else this.#records.set(name, { owner, strikes: counted })
    }
  }
}
