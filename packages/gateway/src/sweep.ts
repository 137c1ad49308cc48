import type { Clock } from '@carpool/core'

/** Told the time, in ms; says whether it is over and need not be looked at again. */
export type Check = (nowMs: number) => boolean

const SWEEP_MS = 100

/**
 * Looks again and again at what must not last too long: one timer for everything, and none while there is nothing to look at. It keeps the
 * process alive until then: a connection that is not read does not.
 */
export class Sweep {
  readonly #clock: Clock
  readonly #checks = new Set<Check>()
  #timer: NodeJS.Timeout | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(check: Check): void {
    this.#checks.add(check)
    this.#timer ??= setInterval(() => this.#run(), SWEEP_MS)
  }

  remove(check: Check): void {
    this.#checks.delete(check)
  }

  #run(): void {
    const nowMs = this.#clock()
    for (const check of this.#checks) if (check(nowMs)) this.#checks.delete(check)
    if (this.#checks.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
