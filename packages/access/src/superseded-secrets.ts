/** The secrets of a function at one time. */
export interface SecretSet {
  /** 0: the function has none and never had. No two sets have another number in common. */
  readonly version: number
  readonly values: Readonly<Record<string, string>>
}

const DEFAULT_MAX_BYTES = 64 * 1024 * 1024

interface Superseded extends SecretSet {
  readonly holder: string
  readonly owner: string
  readonly bytes: number
}

/**
 * Secrets that are not in force any more, but which running calls may still get and log. In memory alone; when there are too
 * many, the oldest of the owner who has the most are forgotten, so that no owner displaces those of others.
 */
export class SupersededSecrets {
  readonly #maxBytes: number
  readonly #maxSets: number
  readonly #sets: Superseded[] = []
  #bytes = 0

  constructor(maxBytes = DEFAULT_MAX_BYTES, maxSets = 1_000) {
    this.#maxBytes = maxBytes
    this.#maxSets = maxSets
  }

  /** @param holder `owner/function` */
  add(holder: string, { version, values }: SecretSet): void {
    const bytes = Object.values(values).reduce((sum, value) => sum + value.length, 0)
    const owner = holder.slice(0, holder.indexOf('/'))
    this.#sets.push({ holder, owner, version, values, bytes })
    this.#bytes += bytes
    while (this.#sets.length > this.#maxSets) this.#forgetOldest(ownerWithMost(this.#sets, () => 1))
    while (this.#bytes > this.#maxBytes) this.#forgetOldest(ownerWithMost(this.#sets, (set) => set.bytes))
  }

  find(holder: string, version: number): SecretSet | undefined {
    return this.#sets.find((set) => set.holder === holder && set.version === version)
  }

  of(holder: string): SecretSet[] {
    return this.#sets.filter((set) => set.holder === holder)
  }

  #forgetOldest(owner: string): void {
    const [oldest] = this.#sets.splice(
      this.#sets.findIndex((set) => set.owner === owner),
      1,
    )
    this.#bytes -= oldest?.bytes ?? 0
  }
}

function ownerWithMost(sets: readonly Superseded[], weightOf: (set: Superseded) => number): string {
  const sums = new Map<string, number>()
  for (const set of sets) sums.set(set.owner, (sums.get(set.owner) ?? 0) + weightOf(set))
  return [...sums].reduce((most, one) => (one[1] > most[1] ? one : most), ['', -1] as const)[0]
}
