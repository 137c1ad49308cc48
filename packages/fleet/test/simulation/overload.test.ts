/** More work than the CPU can do. */
import t from 'tap'
import { IS_WHOLE } from '../../../../test/support/form.ts'
import { FakeClock } from './fake-clock.ts'
import { arrivals, clients, quantile } from './loads.ts'
import type { Call, Settings } from './settings.ts'
import { SimulatedServer } from './simulated-server.ts'

const SPAN_MS = 20_000
const DEADLINE_MS = 1_000

/** Calls that come whatever becomes of them. @param load how many times what fits */
function offered(load: number, settings: Partial<Settings>, functions: number, cpuMs: number) {
  const clock = new FakeClock()
  const server = new SimulatedServer(clock, settings)
  const inTime: number[] = []
  let late = 0
  const usable = Math.min(settings.cores!, functions)
  for (let n = 0; n < functions; n++) {
    const perSecond = (load * usable * 1000) / cpuMs / functions
    arrivals(clock, server, { perSecond, untilMs: SPAN_MS, seed: n + 1 }, () => ({
      functionName: `f${n}`,
      cpuMs: [cpuMs],
      settled: (how, tookMs) => {
        if (how !== 'answered') return
        if (tookMs > DEADLINE_MS) late++
        else if (clock.nowMs > SPAN_MS / 2) inTime.push(tookMs)
      },
    }))
  }
  clock.runUntil(SPAN_MS)
  return { server, late, perSecond: inTime.length / (SPAN_MS / 2000), fitsPerSecond: (usable * 1000) / cpuMs }
}

/** In the short form a function alone where no core is to spare, and several at the most hosts. */
for (const [where, settings, shortFunctions] of [
  ['without a spare core', { cores: 1, maxHosts: 4 }, 1],
  ['at the most hosts', { cores: 2, maxHosts: 1 }, 8],
] as const) {
  for (const [functions, cpuMs] of [
    [1, 1],
    [1, 10],
    [8, 1],
    [8, 10],
  ] as const) {
    if (!IS_WHOLE && (functions !== shortFunctions || cpuMs !== 10)) continue
    t.test(
      `${where}, ${functions} functions of ${cpuMs} ms: at twice the load that fits the rest is refused at once`,
      async (t) => {
        const peak = Math.max(...[0.8, 1, 1.2].map((load) => offered(load, settings, functions, cpuMs).perSecond))
        const { server, late, perSecond } = offered(2, settings, functions, cpuMs)
        t.equal(server.hosts.size, 1)
        t.ok(perSecond >= 0.9 * peak, `${perSecond} of ${peak} good answers a second`)
        t.equal(late, 0, 'what was let in was answered in time')
        t.ok(server.settled.refused > 0)
        t.ok(server.longestRefusalMs <= 120, `refused after ${server.longestRefusalMs} ms`)
        t.notOk(server.decisions.some(({ action }) => action !== 'none'))
      },
    )
  }
}

t.test('of calls that take longer than the target as many are answered as fit, however many come', async (t) => {
  for (const cpuMs of [200, 500]) {
    for (const load of [2, 10]) {
      const clock = new FakeClock()
      const server = new SimulatedServer(clock, { cores: 1, maxHosts: 1 })
      arrivals(clock, server, { perSecond: (load * 1000) / cpuMs, untilMs: 30_000, seed: 1 }, () => ({
        functionName: 'f',
        cpuMs: [cpuMs],
      }))
      clock.runUntil(30_000)
      const { answered } = server.settled
      t.ok(answered >= (0.95 * 30_000) / cpuMs, `${answered} calls of ${cpuMs} ms at ${load} times the load`)
    }
  }
})

t.test('at a load of 70 % nothing is refused, of calls that take up to 50 ms', async (t) => {
  for (const cpuMs of [0.2, 1, 10, 50]) {
    const { server } = offered(0.7, { cores: 1, maxHosts: 1 }, 1, cpuMs)
    t.equal(server.settled.refused, 0, `calls of ${cpuMs} ms`)
  }
})

t.test('a flood of one function hardly delays another one', async (t) => {
  const quiet = (isFlooded: boolean): { p99Ms: number; refused: number } => {
    const clock = new FakeClock()
    const server = new SimulatedServer(clock, { cores: 1, maxHosts: 1 })
    const took: number[] = []
    let refused = 0
    const call: Call = {
      functionName: 'quiet',
      cpuMs: [1],
      settled: (how, tookMs) => (how === 'answered' ? took.push(tookMs) : refused++),
    }
    arrivals(clock, server, { perSecond: 10, untilMs: 30_000, seed: 1 }, () => call)
    if (isFlooded) clock.after(5_000, () => flood(server))
    if (isFlooded)
      clients(clock, server, { count: 1000, fromMs: 5_000, untilMs: 30_000 }, () => ({ functionName: 'flood', cpuMs: [1] }))
    clock.runUntil(31_000)
    return { p99Ms: quantile(took, 0.99), refused }
  }
  const flood = (server: SimulatedServer): void => {
    for (let n = 0; n < 10_000; n++) server.arrive({ functionName: 'flood', cpuMs: [1] })
  }
  const alone = quiet(false)
  const beside = quiet(true)
  t.equal(beside.refused, 0)
  t.ok(beside.p99Ms <= 2 * alone.p99Ms + 10, `${beside.p99Ms} ms beside the flood, ${alone.p99Ms} ms alone`)
})

t.test('work that nobody waits for is not sent to a host', async (t) => {
  // Nothing is refused here, so that clients leave the queue themselves.
  const patient = { intervalMs: 60_000 }
  for (const settings of [patient, {}]) {
    const clock = new FakeClock()
    const server = new SimulatedServer(clock, { cores: 1, maxHosts: 1, ...settings })
    arrivals(clock, server, { perSecond: 300, untilMs: 20_000, seed: 1 }, () => ({
      functionName: 'f',
      cpuMs: [10],
      patienceMs: 100,
    }))
    clock.runUntil(21_000)
    t.equal(server.sentInVain, 0)
    t.equal(server.queued, 0)
    if (settings === patient) t.ok(server.settled.departed > 1_000)
    else t.ok(server.settled.answered >= 0.9 * 2000, `${server.settled.answered} answered of 2000 that fit`)
  }
})

t.test('150 functions, 1 to 150 clients: none is refused', async (t) => {
  for (const count of [1, 20, 150]) {
    const clock = new FakeClock()
    const server = new SimulatedServer(clock)
    for (let n = 0; n < count; n++) {
      clients(clock, server, { count: 1, untilMs: 2_000 }, () => ({ functionName: `f${n}`, cpuMs: [0.5], patienceMs: 1_500 }))
    }
    clock.runUntil(5_000)
    t.strictSame({ ...server.settled, answered: 0 }, { answered: 0, refused: 0, departed: 0 }, `${count} clients`)
  }
})
