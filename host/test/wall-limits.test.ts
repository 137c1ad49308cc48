import fc from 'fast-check'
import t from 'tap'
import { Limited, WallLimits } from '../src/limits/wall-limits.ts'

const step = fc.oneof(
  fc.record({ kind: fc.constant('add' as const), wallMs: fc.constantFrom(100, 1_000, 30_000) }),
  fc.record({ kind: fc.constant('remove' as const), index: fc.nat() }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(2_000) }),
)

/** Timers on a clock that the test sets. */
class Timers {
  nowMs = 0.5
  readonly #set = new Map<() => void, number>()

  readonly later = (callback: () => void, inMs: number): void => void this.#set.set(callback, this.nowMs + inMs)

  get count(): number {
    return this.#set.size
  }

  pass(ms: number): void {
    const untilMs = this.nowMs + ms
    for (;;) {
      const [next] = [...this.#set].filter(([, atMs]) => atMs <= untilMs).toSorted(([, a], [, b]) => a - b)
      if (next === undefined) break
      this.#set.delete(next[0])
      this.nowMs = next[1]
      next[0]()
    }
    this.nowMs = untilMs
  }
}

t.test('whatever comes and goes: who stays is reported once, when its time is up, and there are few timers', async () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      const timers = new Timers()
      const due = new Map<Limited, number>()
      let isRight = true
      const limits = new WallLimits<Limited>(
        (limited) => {
          const endsAtMs = due.get(limited)
          isRight &&= endsAtMs !== undefined && timers.nowMs >= endsAtMs && timers.nowMs <= endsAtMs + 1
          due.delete(limited)
        },
        () => timers.nowMs,
        timers.later,
      )
      for (const one of steps) {
        if (one.kind === 'add') {
          const limited = new Limited()
          due.set(limited, timers.nowMs + one.wallMs)
          limits.add(limited, one.wallMs)
        } else if (one.kind === 'pass') timers.pass(one.ms)
        else {
          const limited = [...due.keys()][one.index % Math.max(due.size, 1)]
          if (limited === undefined) continue
          due.delete(limited)
          limits.remove(limited)
          limits.remove(limited)
        }
        isRight &&= timers.count <= 3
      }
      timers.pass(30_001)
      return isRight && due.size === 0 && timers.count === 0
    }),
  )
})
