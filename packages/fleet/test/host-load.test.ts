import type { LoadReport } from '@carpool/wire'
import fc from 'fast-check'
import t from 'tap'
import { HostLoad, LoadHistory } from '../src/health/host-load.ts'

const QUIET: LoadReport = {
  type: 'load-report',
  windowMs: 100,
  runDelay: { count: 0, p50Us: 0, p90Us: 0, p99Us: 0 },
  sharedDelayUs: 0,
  oldestWaitUs: 0,
  resumed: 0,
  entered: 0,
  isolates: 0,
  lingering: 0,
  loopUtilization: 0,
  loopDelayMs: 0,
  cpuUs: 0,
  memoryBytes: 0,
}
const DELAYED: LoadReport = { ...QUIET, loopUtilization: 1, runDelay: { count: 9, p50Us: 2_000, p90Us: 8_000, p99Us: 9_000 } }

function hostLoad(): HostLoad {
  return new HostLoad({ targetMs: 5, saturationPercent: 80, keptMs: 10_000, nowMs: 0 })
}

t.test('what a host reports becomes means over time', async (t) => {
  const host = hostLoad()
  for (let atMs = 100; atMs <= 2_000; atMs += 100) {
    host.onReport(atMs <= 1_000 ? QUIET : DELAYED, atMs)
    host.sample({ cpuUs: atMs * 1000, memoryBytes: 7 }, true, atMs)
  }
  t.match(host.over(1_000), { cpuCores: 1, loopUtilization: 1, delayedShare: 1 })
  t.equal(host.over(1_900).delayedShare, 1_000 / 1_900)
  t.same(host.runDelayMs(2_000), { p50: 2, p90: 8, p99: 9 })
  t.ok(host.isDelayed(2_900))
  t.notOk(host.isDelayed(3_100))
  t.equal(host.memoryBytes, 7)
})

t.test(
  'a host that has work and reports nothing is stuck: its loop is busy and its work is late, and none of it counts twice',
  async (t) => {
    const host = hostLoad()
    host.onReport(QUIET, 1_000)
    host.sample(undefined, true, 1_000)
    for (let atMs = 1_250; atMs <= 4_000; atMs += 250) host.sample(undefined, true, atMs)
    t.equal(host.over(3_000).loopUtilization, 1)
    t.equal(host.over(3_000).delayedShare, 1)
    t.equal(host.loopDelayMs(4_000), 3_000)
    t.same(host.runDelayMs(4_000), { p50: 0, p90: 0, p99: 0 }, 'the last report is too old')
    host.onReport({ ...DELAYED, windowMs: 3_000 }, 4_000)
    host.sample(undefined, true, 4_000)
    t.equal(host.over(3_000).loopUtilization, 1)
  },
)

t.test('an entry that still waits counts, when none ran or it waits for long', async (t) => {
  const busy = { ...QUIET, runDelay: { count: 100, p50Us: 20, p90Us: 40, p99Us: 90 } }
  const cases: Array<[LoadReport, boolean]> = [
    [{ ...QUIET, oldestWaitUs: 4_000 }, false],
    [{ ...QUIET, oldestWaitUs: 6_000 }, true],
    [{ ...busy, oldestWaitUs: 6_000 }, false],
    [{ ...busy, oldestWaitUs: 60_000 }, true],
  ]
  for (const [report, isDelayed] of cases) {
    const host = hostLoad()
    host.onReport(report, 100)
    t.equal(host.isDelayed(100), isDelayed)
  }
})

t.test('a host that has no work may be silent', async (t) => {
  const host = hostLoad()
  host.onReport(QUIET, 1_000)
  for (let atMs = 1_000; atMs <= 4_000; atMs += 250) host.sample(undefined, false, atMs)
  t.equal(host.over(3_000).loopUtilization, 0)
  t.notOk(host.isDelayed(0))
})

t.test('nonsense counts as nothing', async (t) => {
  const host = hostLoad()
  host.onReport({ ...DELAYED, loopUtilization: Number.NaN, isolates: -3, lingering: 'x' as unknown as number }, 100)
  host.onReport({ ...DELAYED, loopUtilization: 1e9 }, 200)
  host.sample(undefined, true, 200)
  t.same([host.isolates, host.lingering], [0, 0])
  host.sample(undefined, true, 400)
  t.ok(host.over(400).loopUtilization <= 1)
})

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

t.test('a process that uses no CPU time is not busy, however silent', async (t) => {
  const host = hostLoad()
  host.onReport(QUIET, 1_000)
  for (let atMs = 1_000; atMs <= 4_000; atMs += 250) host.sample({ cpuUs: 9_000, memoryBytes: 1 }, true, atMs)
  t.equal(host.over(2_000).loopUtilization, 0)
  t.notOk(host.isDelayed(4_000))
})

t.test('time in which the server itself was held up is nobody else’s silence', async (t) => {
  const host = hostLoad()
  host.onReport(QUIET, 1_000)
  host.sample(undefined, true, 1_000)
  host.excuse(7_750, 9_000)
  host.sample(undefined, true, 9_000)
  t.equal(host.silentMs(9_000), 250)
  t.equal(host.over(8_000).loopUtilization, 0)
  host.excuse(60_000, 9_100)
  t.equal(host.silentMs(9_100), 0, 'and never less than none')
})

t.test('what it had no work for is not silence: without work it reports seldom', async (t) => {
  const host = hostLoad()
  host.onReport(QUIET, 1_000)
  for (let atMs = 1_000; atMs <= 1_750; atMs += 250) host.sample(undefined, false, atMs)
  t.equal(host.silentMs(1_800), 0)
  host.sample(undefined, true, 2_000)
  t.equal(host.silentMs(2_000), 250, 'the work may have come just after the last look')
  t.notOk(host.isSilent(2_000))
  t.notOk(host.isDelayed(2_000))
  t.equal(host.over(1_000).loopUtilization, 0)
  host.sample(undefined, true, 2_500)
  t.ok(host.isSilent(2_500))
  t.ok(host.isDelayed(2_500))
  t.equal(host.over(1_000).loopUtilization, 750 / 1_000)
})

t.test('work that is taken back while a host says nothing does not begin its silence anew', async (t) => {
  const host = hostLoad()
  host.onReport(QUIET, 1_000)
  host.sample(undefined, false, 1_000)
  for (const [atMs, hasWork] of [
    [1_250, true],
    [1_500, true],
    [1_750, false],
    [2_000, true],
  ] as const)
    host.sample(undefined, hasWork, atMs)
  t.equal(host.silentMs(2_000), 1_000)
  host.excuse(300, 2_000)
  t.equal(host.silentMs(2_000), 700)
  host.onReport(QUIET, 2_100)
  t.equal(host.silentMs(2_200), 0)
})
