import type { Clock } from './clock.ts'

export interface RoundRobinOptions {
  /** How long tasks may be begun in one turn of the event loop, in ms. */
  readonly turnMs: number
  readonly clock: Clock
  /** Calls back in the next turn of the event loop. */
  readonly nextTurn: (callback: () => void) => void
}

/**
 * Begins tasks for a bounded time in each turn of the event loop, and the rest in the next ones: by round robin between
 * functions.
 */
export class RoundRobin {
  readonly #options: RoundRobinOptions
  /** Waiting tasks by function; the function that is next comes first. */
  readonly #queues = new Map<string, Array<() => void>>()
  /** When this turn begins no more; undefined before its first task. */
  #endsAtMs: number | undefined

  constructor(options: RoundRobinOptions) {
    this.#options = options
  }

  /** Whether tasks wait for the next turns. */
  get isBusy(): boolean {
    return this.#queues.size > 0
  }

  /** Begins the task now, or in one of the next turns. */
  enter(functionName: string, begin: () => void): void {
    if (this.#queues.size === 0 && this.#hasTime()) return begin()
    const queue = this.#queues.get(functionName)
    if (queue === undefined) this.#queues.set(functionName, [begin])
    else queue.push(begin)
  }

  #hasTime(): boolean {
    const nowMs = this.#options.clock()
    if (this.#endsAtMs === undefined) {
      this.#endsAtMs = nowMs + this.#options.turnMs
      this.#options.nextTurn(() => this.#runTurn())
    }
    return nowMs < this.#endsAtMs
  }

  #runTurn(): void {
    this.#endsAtMs = undefined
    for (const [functionName, queue] of this.#queues) {
      if (!this.#hasTime()) return
      // Removed and set again, the function is visited again by this loop, behind the others.
      this.#queues.delete(functionName)
      const begin = queue.shift()
      if (queue.length > 0) this.#queues.set(functionName, queue)
      begin?.()
    }
  }
}
