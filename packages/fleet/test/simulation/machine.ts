import type { FakeClock } from './fake-clock.ts'

/** What a thread has to do, and who is told of it. */
export interface Task {
  leftMs: number
  readonly used: (cpuMs: number) => void
  readonly done: () => void
}

/** How long a thread runs before another one that waits gets its core, in ms. */
const TIME_SLICE_MS = 3

/** Cores that threads share in turns. */
export class Machine {
  readonly cores: number
  readonly #clock: FakeClock
  #runnable: Task[] = []
  #next = 0
  #busy = 0
  usedMs = 0

  constructor(clock: FakeClock, cores: number) {
    this.#clock = clock
    this.cores = cores
  }

  run(task: Task): void {
    this.#runnable.push(task)
    if (this.#busy < this.cores) this.#turn()
  }

  #turn(): void {
    const task = this.#runnable[this.#next]
    if (task === undefined) return
    if (++this.#next > 1000) {
      this.#runnable = this.#runnable.slice(this.#next)
      this.#next = 0
    }
    this.#busy++
    const sliceMs = Math.min(task.leftMs, TIME_SLICE_MS)
    this.#clock.after(sliceMs, () => {
      this.#busy--
      this.usedMs += sliceMs
      task.leftMs -= sliceMs
      task.used(sliceMs)
      if (task.leftMs > 0) this.#runnable.push(task)
      else task.done()
      while (this.#busy < this.cores && this.#next < this.#runnable.length) this.#turn()
    })
  }
}
