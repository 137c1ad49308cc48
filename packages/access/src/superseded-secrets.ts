/** The secrets of a function at one time. */
export interface SecretSet {
  /** 0: the function has none and never had. No two sets have another number in common. */
  readonly version: number
  readonly values: Readonly<Record<string, string>>
}

const DEFAULT_MAX_BYTES = 64 * 1024 * 1024

interface Superseded extends SecretSet {
  readonly holder: string
  readonly bytes: number
}

/**
 * Secrets that are not in force any more, but which calls under way may still be given and may still log. In memory alone; the oldest are
 * forgotten when there are too many.
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

  add(holder: string, { version, values }: SecretSet): void {
    const bytes = Object.values(values).reduce((sum, value) => sum + value.length, 0)
    this.#sets.push({ holder, version, values, bytes })
    this.#bytes += bytes
    while (this.#sets.length > this.#maxSets || this.#bytes > this.#maxBytes) this.#bytes -= this.#sets.shift()?.bytes ?? 0
  }

  find(holder: string, version: number): SecretSet | undefined {
    return this.#sets.find((set) => set.holder === holder && set.version === version)
  }

  of(holder: string): SecretSet[] {
    return this.#sets.filter((set) => set.holder === holder)
  }
}
