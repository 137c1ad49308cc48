import fc from 'fast-check'
import t from 'tap'
import { LoadHistory } from '../src/index.ts'

t.test('means are those of the window, and of what is known if that is less', async (t) => {
  const history = new LoadHistory(10_000)
  t.equal(history.over(1_000).spanMs, 0)
  for (let atMs = 0, cpuMs = 0; atMs <= 4_000; atMs += 250) {
    history.add({ atMs, cpuMs, loopMs: atMs / 2, delayedMs: atMs <= 3_000 ? 0 : atMs - 3_000 })
    if (atMs >= 2_000) cpuMs += 250
  }
  t.same(history.over(1_000), { cpuCores: 1, loopUtilization: 0.5, delayedShare: 1, spanMs: 1_000 })
  t.same(history.over(2_000), { cpuCores: 1, loopUtilization: 0.5, delayedShare: 0.5, spanMs: 2_000 })
  t.same(history.over(60_000), { cpuCores: 0.5, loopUtilization: 0.5, delayedShare: 0.25, spanMs: 4_000 })
})

t.test('it forgets what no window asks for, and keeps what one does', async (t) => {
  const history = new LoadHistory(1_000)
  for (let atMs = 0; atMs <= 600_000; atMs += 100) history.add({ atMs, cpuMs: atMs, loopMs: 0, delayedMs: 0 })
  t.equal(history.over(1_000).spanMs, 1_000)
  t.equal(history.over(60_000).spanMs, 1_000)
})

t.test('a mean is never above what was added', async () => {
  const step = fc.record({ passedMs: fc.integer({ min: 1, max: 500 }), share: fc.double({ min: 0, max: 1, noNaN: true }) })
  fc.assert(
    fc.property(fc.array(step, { minLength: 2 }), fc.integer({ min: 1, max: 5_000 }), (steps, windowMs) => {
      const history = new LoadHistory(5_000)
      let [atMs, busyMs] = [0, 0]
      for (const { passedMs, share } of steps) {
        atMs += passedMs
        busyMs += passedMs * share
        history.add({ atMs, cpuMs: busyMs, loopMs: busyMs, delayedMs: busyMs })
      }
      const { cpuCores, loopUtilization, delayedShare } = history.over(windowMs)
      return [cpuCores, loopUtilization, delayedShare].every((mean) => mean >= 0 && mean <= 1 + 1e-9)
    }),
  )
})
