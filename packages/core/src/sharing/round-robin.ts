import type { Clock } from '../clock.ts'
import { FairOrder, Flow, type Holder } from './fair-order.ts'

export interface RoundRobinOptions {
  /** How long tasks may be begun in one turn of the event loop, in ms; a function is asked in each. */
  readonly turnMs: number | (() => number)
  readonly clock: Clock
  /** Calls back in the next turn of the event loop. */
  readonly nextTurn: (callback: () => void) => void
  /**
   * Calls back when a task that has returned is done: its promises may have more to do at once. The next task waits for it, and
   * its time counts. Default: a task is done when it returns.
   */
  readonly afterTask?: (callback: () => void) => void
}

/** The tasks of one function that wait, oldest first. */
class WaitingTasks extends Flow {
  readonly tasks: Array<() => void> = []
}

/**
 * Begins tasks for a bounded time in each turn of the event loop, and the rest in the next ones: by round robin between owners,
 * and then between the functions of each.
 */
export class RoundRobin {
  readonly #options: RoundRobinOptions
  readonly #order = new FairOrder((holder) => new WaitingTasks(holder))
  /** When this turn begins no more; undefined before its first task. */
  #endsAtMs: number | undefined
  /** A task has begun and is not done. */
  #isInTask = false
  readonly #onTaskDone = (): void => {
    this.#isInTask = false
    this.#runWaiting()
  }

  constructor(options: RoundRobinOptions) {
    this.#options = options
  }

  /** Whether tasks wait for the next turns. */
  get isBusy(): boolean {
    return this.#order.waiting > 0
  }

  /** Whether a task that enters would begin at once. Who asks may do one without entering: its time counts. */
  get isFree(): boolean {
    return !this.isBusy && !this.#isInTask && this.#hasTime()
  }

  /** Begins the task now, or in one of the next turns. */
  enter(holder: Holder, begin: () => void): void {
    if (this.isFree) return this.#run(begin)
    this.#order.wait(holder).tasks.push(begin)
  }

  #run(begin: () => void): void {
    const { afterTask } = this.#options
    if (afterTask === undefined) return begin()
    this.#isInTask = true
    try {
      begin()
    } finally {
      afterTask(this.#onTaskDone)
    }
  }

  #hasTime(): boolean {
    const nowMs = this.#options.clock()
    if (this.#endsAtMs === undefined) {
      const { turnMs } = this.#options
      this.#endsAtMs = nowMs + (typeof turnMs === 'number' ? turnMs : turnMs())
      this.#options.nextTurn(() => this.#runTurn())
    }
    return nowMs < this.#endsAtMs
  }

  #runTurn(): void {
    this.#endsAtMs = undefined
    this.#runWaiting()
  }

  #runWaiting(): void {
    for (let next = this.#order.first(); next !== undefined; next = this.#order.first()) {
      if (this.#isInTask || !this.#hasTime()) return
      const begin = next.tasks.shift()
      this.#order.charge(next, 1)
      if (next.tasks.length === 0) this.#order.rest(next)
      this.#run(begin!)
    }
    this.#order.reset()
  }
}
