/** How many hosts there are, as the work comes and goes. */
import t from 'tap'
import { FakeClock } from './fake-clock.ts'
import { arrivals, clients } from './loads.ts'
import type { Settings } from './settings.ts'
import { SimulatedServer } from './simulated-server.ts'

function simulate(settings: Partial<Settings> = {}): { clock: FakeClock; server: SimulatedServer } {
  const clock = new FakeClock()
  return { clock, server: new SimulatedServer(clock, settings) }
}

const changesOf = (server: SimulatedServer) => server.decisions.filter(({ action }) => action !== 'none')

t.test('a thousand calls that sleep for a second: one host from beginning to end', async (t) => {
  const { clock, server } = simulate({ cores: 8, maxHosts: 8 })
  clock.after(1_000, () => {
    for (let n = 0; n < 1_000; n++) server.arrive({ functionName: 'sleep', cpuMs: [0.05, 0.05], waitMs: [1_000] })
  })
  clock.runUntil(5_000)
  t.strictSame(server.settled, { answered: 1_000, refused: 0, departed: 0 })
  t.strictSame(changesOf(server), [])
})

for (const [cpuMs, count] of [
  [1, 200],
  [8, 16],
  [200, 8],
] as const) {
  t.test(`calls of ${cpuMs} ms that fill a core, with another one to spare: a second host serves within 2 s`, async (t) => {
    const { clock, server } = simulate({ cores: 2, maxHosts: 2 })
    clients(clock, server, { count, fromMs: 3_000, untilMs: 40_000, retryMs: 100 }, () => ({
      functionName: 'calc',
      cpuMs: [cpuMs],
    }))
    clock.runUntil(5_000)
    t.equal([...server.hosts].filter(({ state }) => state === 'ready').length, 2)
    clock.runUntil(40_000)
    t.strictSame(
      changesOf(server).map(({ action }) => action),
      ['grow'],
    )
  })
}

t.test('two hosts answer at least 1.6 times as many calls as one', async (t) => {
  const answered = [1, 2].map((maxHosts) => {
    const { clock, server } = simulate({ cores: 2, maxHosts })
    clients(clock, server, { count: 16, untilMs: 20_000, retryMs: 100 }, () => ({ functionName: 'calc', cpuMs: [8] }))
    clock.runUntil(10_000)
    const before = server.settled.answered
    clock.runUntil(20_000)
    return server.settled.answered - before
  })
  t.ok(answered[1]! >= 1.6 * answered[0]!, answered.join(' and '))
})

t.test('an upstream that slows down while the CPU idles: nothing is refused, and no host is added', async (t) => {
  const { clock, server } = simulate({ cores: 8, maxHosts: 8 })
  arrivals(clock, server, { perSecond: 500, untilMs: 30_000, seed: 1 }, () => ({
    functionName: 'proxy',
    cpuMs: [0.3, 0.3],
    waitMs: [clock.nowMs < 10_000 ? 10 : 2_000],
  }))
  clock.runUntil(35_000)
  t.equal(server.settled.refused, 0)
  t.ok(server.settled.answered > 14_000)
  t.strictSame(changesOf(server), [])
})

t.test('a square wave of load changes the hosts at most once a period, and in the end not at all', async (t) => {
  const { clock, server } = simulate({ cores: 4, maxHosts: 4 })
  for (let period = 0; period < 6; period++) {
    const fromMs = period * 60_000
    clients(clock, server, { count: 16, fromMs, untilMs: fromMs + 30_000, retryMs: 100 }, () => ({
      functionName: 'wave',
      cpuMs: [10],
    }))
  }
  for (let period = 0; period < 6; period++) {
    const before = changesOf(server).length
    clock.runUntil((period + 1) * 60_000)
    // The first wave finds one host: it grows step by step to what the wave needs.
    const most = period === 0 ? 3 : 0
    t.ok(changesOf(server).length - before <= most, `${changesOf(server).length - before} changes in period ${period}`)
  }
})

t.test('a burst after a minute of idleness never takes a host away', async (t) => {
  const { clock, server } = simulate({ cores: 2, maxHosts: 2 })
  const burst = (fromMs: number, untilMs: number): void =>
    clients(clock, server, { count: 16, fromMs, untilMs, retryMs: 100 }, () => ({ functionName: 'burst', cpuMs: [10] }))
  burst(0, 10_000)
  // The window of 60 s is over at the time of the second burst.
  burst(68_000, 90_000)
  clock.runUntil(90_000)
  t.strictSame(
    changesOf(server).map(({ action }) => action),
    ['grow'],
  )
})

t.test('what is idle for long leaves, one host at a time, and no call fails for it', async (t) => {
  const { clock, server } = simulate({ cores: 4, maxHosts: 4 })
  clients(clock, server, { count: 32, untilMs: 30_000, retryMs: 100 }, () => ({ functionName: 'calc', cpuMs: [10] }))
  clock.runUntil(30_000)
  const refused = server.settled.refused
  t.ok(server.hosts.size > 2)
  arrivals(clock, server, { perSecond: 20, fromMs: 1_000, untilMs: 239_000, seed: 1 }, () => ({
    functionName: 'calc',
    cpuMs: [5, 0.1],
    waitMs: [500],
  }))
  clock.runUntil(240_000)
  t.equal(server.hosts.size, 1)
  t.equal(server.settled.refused, refused)
  t.equal(server.open, 0)
  const leftAtMs = changesOf(server).flatMap(({ action, atMs }) => (action === 'shrink' ? [atMs] : []))
  t.ok(leftAtMs.every((atMs, n) => n === 0 || atMs - leftAtMs[n - 1]! >= 20_000))
})

/**
 * A slice of a day, by the minute: calls a second of short CPU that wait for long, and of CPU alone. The first are many when
 * the others are few.
 */
const SLICE = [
  { waiting: 20, computing: 5 },
  { waiting: 400, computing: 5 },
  { waiting: 800, computing: 5 },
  { waiting: 20, computing: 60 },
  { waiting: 20, computing: 150 },
  { waiting: 400, computing: 150 },
  { waiting: 400, computing: 5 },
  { waiting: 800, computing: 5 },
] as const

t.test('in a slice of a day hosts follow CPU, not concurrency', async (t) => {
  const { clock, server } = simulate({ cores: 4, maxHosts: 4 })
  const minutes: Array<{ hosts: number; inFlight: number }> = []
  for (const [minute, { waiting, computing }] of SLICE.entries()) {
    const fromMs = minute * 60_000
    const when = { untilMs: fromMs + 60_000, seed: minute + 1 }
    clock.after(0, () => {
      arrivals(clock, server, { ...when, perSecond: waiting }, () => ({
        functionName: 'wait',
        cpuMs: [0.05, 0.05],
        waitMs: [2_000],
      }))
      arrivals(clock, server, { ...when, perSecond: computing }, () => ({ functionName: 'compute', cpuMs: [10] }))
    })
    clock.runUntil(fromMs + 59_000)
    const hosts = [...server.hosts].filter(({ state }) => state === 'ready')
    minutes.push({ hosts: hosts.length, inFlight: hosts.reduce((sum, { inFlight }) => sum + inFlight, 0) })
    clock.runUntil(fromMs + 60_000)
  }
  t.strictSame(
    minutes.slice(0, 4).map(({ hosts }) => hosts),
    [1, 1, 1, 1],
    'many in flight are no reason for a host',
  )
  t.ok(minutes[2]!.inFlight > 1_500)
  t.ok(minutes[4]!.hosts >= 2 && minutes[4]!.inFlight < 200, 'CPU is, with few in flight')
  t.equal(minutes.at(-1)!.hosts, 1, 'and they leave with it')
  clock.runUntil(SLICE.length * 60_000 + 5_000)
  const { answered, refused } = server.settled
  t.equal(server.open, 0, 'no call is lost')
  t.ok(refused <= 0.01 * answered, `${refused} refused, ${answered} answered`)
})
