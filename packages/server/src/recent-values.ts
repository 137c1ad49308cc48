import type { Clock } from '@carpool/core'

interface RecentValuesOptions {
  readonly clock: Clock
  /** A value is kept for so long after it was set, in ms; up to twice as long. */
  readonly keptMs: number
  /** Most values of one such time: beyond, those before it are forgotten sooner. Default: no limit. */
  readonly maxValues?: number
}

/** Values by name, which are forgotten some time after they were set last. */
export class RecentValues<V> {
  readonly #clock: Clock
  readonly #keptMs: number
  readonly #maxValues: number
  #lately = new Map<string, V>()
  #before = new Map<string, V>()
  #sinceMs: number

  constructor({ clock, keptMs, maxValues = Infinity }: RecentValuesOptions) {
    this.#clock = clock
    this.#keptMs = keptMs
    this.#maxValues = maxValues
    this.#sinceMs = clock()
  }

  /** Cheap to ask. What is to be forgotten may still count. */
  get isEmpty(): boolean {
    return this.#lately.size === 0 && this.#before.size === 0
  }

  get(name: string): V | undefined {
    this.#turn()
    return this.#lately.get(name) ?? this.#before.get(name)
  }

  set(name: string, value: V): void {
    this.#turn()
    this.#lately.set(name, value)
  }

  #turn(): void {
    const nowMs = this.#clock()
    const agoMs = nowMs - this.#sinceMs
    if (agoMs < this.#keptMs && this.#lately.size < this.#maxValues) return
    this.#before = agoMs < 2 * this.#keptMs ? this.#lately : new Map()
    this.#lately = new Map()
    this.#sinceMs = nowMs
  }
}
