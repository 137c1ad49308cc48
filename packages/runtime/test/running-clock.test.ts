import t from 'tap'
import { run } from './support/guest.ts'

/** Here functions read a clock that goes on within an entry. */
const RUNNING = { clock: 'running' } as const

t.test('A clock that runs never goes back, whatever user code replaces, and is finer than a millisecond', (t) => {
  const read = `
    const clock = performance.now.bind(performance)
    const times = Array.from({ length: 20_000 }, clock)
    const isMonotonic = times.every((time, index) => index === 0 || time >= times[index - 1])`
  t.same(run(`${read}; return [isMonotonic, times[0] >= 0, times.some((time) => time % 1 !== 0)]`, {}, RUNNING), [
    true,
    true,
    true,
  ])
  const goBack = `let ns = 10n ** 18n
    Temporal.Now.instant = () => ({ epochNanoseconds: (ns -= 1000n) })
    Object.defineProperty(Temporal.Instant.prototype, 'epochNanoseconds', { get: () => (ns -= 1000n) })
    Date.now = () => Number(ns -= 1000n)`
  t.same(run(`${goBack}; ${read}; return [isMonotonic, times.at(-1) > times[0], times.at(-1) < 1e9]`, {}, RUNNING), [
    true,
    true,
    true,
  ])
  t.end()
})
