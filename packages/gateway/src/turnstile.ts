import type { Clock } from '@carpool/core'

export interface TurnstileOptions {
  /** How long work may be taken on in one turn of the event loop, in ms. */
  readonly turnMs: number
  readonly clock: Clock
  /** Calls back in the next turn of the event loop. */
  readonly nextTurn: (callback: () => void) => void
}

/** Takes on so much work in one turn of the event loop, and what is left in the next ones: of each function one piece in turn. */
export class Turnstile {
  readonly #options: TurnstileOptions
  /** What waits, by function; the one that is served next comes first. */
  readonly #lanes = new Map<string, Array<() => void>>()
  /** When this turn takes on no more; undefined before its first request. */
  #endsAtMs: number | undefined

  constructor(options: TurnstileOptions) {
    this.#options = options
  }

  /** Whether work is left for the next turns. */
  get isBusy(): boolean {
    return this.#lanes.size > 0
  }

  /** Begins the work now, or in one of the next turns. */
  enter(functionName: string, begin: () => void): void {
    if (this.#lanes.size === 0 && this.#hasTime()) return begin()
    const lane = this.#lanes.get(functionName)
    if (lane === undefined) this.#lanes.set(functionName, [begin])
    else lane.push(begin)
  }

  #hasTime(): boolean {
    const nowMs = this.#options.clock()
    if (this.#endsAtMs === undefined) {
      this.#endsAtMs = nowMs + this.#options.turnMs
      this.#options.nextTurn(() => this.#takeOn())
    }
    return nowMs < this.#endsAtMs
  }

  #takeOn(): void {
    this.#endsAtMs = undefined
    while (this.#lanes.size > 0 && this.#hasTime()) {
      const [functionName, lane] = first(this.#lanes)
      this.#lanes.delete(functionName)
      const begin = lane.shift()
      if (lane.length > 0) this.#lanes.set(functionName, lane)
      begin?.()
    }
  }
}

function first<K, V>(entries: ReadonlyMap<K, V>): [K, V] {
  return entries.entries().next().value!
}
