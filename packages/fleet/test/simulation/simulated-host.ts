import { RunDelayHistogram } from '@carpool/wire'
import type { HostView, Load } from '../../src/scaling/scaling-policy.ts'
import type { FakeClock } from './fake-clock.ts'
import type { Machine } from './machine.ts'

export const WINDOW_MS = 100

/** One uninterrupted run of an isolate. */
export interface Entry {
  readonly cpuMs: number
  /** Whether it is still to run when its turn comes. */
  readonly isWanted: () => boolean
  readonly ended: () => void
}

interface RunQueue {
  readonly waiting: Array<Entry & { readonly readyMs: number }>
  next: number
  isBusy: boolean
}

interface Sample {
  readonly cpuMs: number
  readonly isDelayed: boolean
}

/** A host process: each function has an isolate, which runs one entry at a time. */
export class SimulatedHost {
  readonly id: number
  readonly runningOf = new Map<string, number>()
  state: HostView['state'] = 'starting'
  readySinceMs = 0
  running = 0
  inFlight = 0
  entries = 0
  readonly #clock: FakeClock
  readonly #machine: Machine
  readonly #queues = new Map<string, RunQueue>()
  readonly #delays = new RunDelayHistogram()
  readonly #samples: Sample[] = []
  #usedMs = 0

  constructor(id: number, clock: FakeClock, machine: Machine) {
    this.id = id
    this.#clock = clock
    this.#machine = machine
  }

  begin(functionName: string): void {
    this.running++
    this.runningOf.set(functionName, (this.runningOf.get(functionName) ?? 0) + 1)
  }

  end(functionName: string): void {
    this.running--
    const left = this.runningOf.get(functionName)! - 1
    if (left === 0) this.runningOf.delete(functionName)
    else this.runningOf.set(functionName, left)
  }

  enter(functionName: string, entry: Entry): void {
    let queue = this.#queues.get(functionName)
    if (queue === undefined) this.#queues.set(functionName, (queue = { waiting: [], next: 0, isBusy: false }))
    queue.waiting.push({ ...entry, readyMs: this.#clock.nowMs })
    if (!queue.isBusy) this.#runNext(queue)
  }

  /** The run delays of the last 100 ms, of which this must be the end. */
  sample(targetMs: number): { readonly p90Us: number; readonly count: number } {
    const ended = this.#delays.summary()
    this.#delays.reset()
    // Entries longer than the window: what waits now tells more than what did not end.
    const waitedMs = [...this.#queues.values()].flatMap(({ waiting, next }) =>
      waiting.slice(next, next + 1).map(({ readyMs }) => this.#clock.nowMs - readyMs),
    )
    const summary = ended.count > 0 ? ended : { count: waitedMs.length, p90Us: Math.max(0, ...waitedMs) * 1000 }
    this.#samples.push({ cpuMs: this.#usedMs, isDelayed: summary.p90Us > targetMs * 1000 })
    if (this.#samples.length > 600) this.#samples.shift()
    this.#usedMs = 0
    return summary
  }

  load(windowMs: number): Load {
    const samples = this.#samples.slice(-windowMs / WINDOW_MS)
    const spanMs = samples.length * WINDOW_MS
    const cpuMs = samples.reduce((sum, { cpuMs }) => sum + cpuMs, 0)
    return {
      cpuCores: cpuMs / Math.max(1, spanMs),
      loopUtilization: 0,
      delayedShare: samples.filter(({ isDelayed }) => isDelayed).length / Math.max(1, samples.length),
      spanMs,
    }
  }

  #runNext(queue: RunQueue): void {
    for (;;) {
      const entry = queue.waiting[queue.next]
      if (entry === undefined) {
        queue.waiting.length = queue.next = 0
        return
      }
      queue.next++
      if (!entry.isWanted()) {
        entry.ended()
        continue
      }
      this.entries++
      queue.isBusy = true
      return this.#machine.run({
        leftMs: entry.cpuMs,
        used: (cpuMs) => (this.#usedMs += cpuMs),
        done: () => {
          this.#delays.add((this.#clock.nowMs - entry.readyMs - entry.cpuMs) * 1000)
          queue.isBusy = false
          entry.ended()
          if (!queue.isBusy) this.#runNext(queue)
        },
      })
    }
  }
}
