import t from 'tap'
import { Standstill } from '../src/health/standstill.ts'

interface Reading {
  readonly cpuMs: number
  readonly firstThreadMs?: number
}

function usage({ cpuMs, firstThreadMs }: Reading) {
  const firstThreadNs = firstThreadMs === undefined ? undefined : firstThreadMs * 1e6
  return { cpuUs: cpuMs * 1000, memoryBytes: 0, firstThreadNs }
}

t.test('a process that uses no CPU time while it says nothing stands still; one that does is busy', async (t) => {
  for (const [perTickMs, isFrozen] of [
    [0, true],
    [3, true],
    [60, false],
    [250, false],
  ] as const) {
    const host = new Standstill()
    for (let tick = 0; tick <= 8; tick++) host.sample(usage({ cpuMs: 900 + tick * perTickMs }), 0, tick * 250)
    t.equal(host.isFrozen, isFrozen, `${perTickMs} ms in 250`)
  }
})

t.test('what a process used before it fell silent does not count, and one that is heard stands still no more', async (t) => {
  const host = new Standstill()
  host.sample(usage({ cpuMs: 100 }), 0, 0)
  host.heard()
  host.sample(usage({ cpuMs: 300 }), 0, 250)
  t.notOk(host.isFrozen, 'too soon to tell')
  for (const atMs of [500, 750, 1_000]) host.sample(usage({ cpuMs: 300 }), 0, atMs)
  t.ok(host.isFrozen)
  host.heard()
  t.notOk(host.isFrozen)
})

t.test(
  'calls that were sent since the first thread last ran are unread, once the host would notice that it was away',
  async (t) => {
    const host = new Standstill()
    host.sample(usage({ cpuMs: 100, firstThreadMs: 50 }), 7, 0)
    // The first thread ran once more before it stopped, and may have read what was sent until then.
    host.sample(usage({ cpuMs: 100, firstThreadMs: 51 }), 9, 250)
    for (const atMs of [500, 750, 1_000, 1_250]) host.sample(usage({ cpuMs: 100, firstThreadMs: 51 }), 20, atMs)
    t.equal(host.unreadAfter, undefined, 'after 1 s the host may not have noticed yet')
    // Other threads of it may run: a function that keeps the process busy is blamed, and yet nothing was read.
    host.sample(usage({ cpuMs: 900, firstThreadMs: 51 }), 21, 1_500)
    t.equal(host.unreadAfter, 9)
    t.notOk(host.isFrozen)
    host.sample(usage({ cpuMs: 900, firstThreadMs: 52 }), 21, 1_750)
    t.equal(host.unreadAfter, undefined, 'it runs again')
  },
)

t.test('where the system tells nothing of it, nothing is known', async (t) => {
  const host = new Standstill()
  for (let atMs = 0; atMs <= 5_000; atMs += 250) host.sample(usage({ cpuMs: 1 }), 1, atMs)
  t.equal(host.unreadAfter, undefined, 'no times of threads')
  for (let atMs = 5_250; atMs <= 9_000; atMs += 250) host.sample(undefined, 1, atMs)
  t.notOk(host.isFrozen, 'no times at all')
})
