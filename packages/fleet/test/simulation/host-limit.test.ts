/** The limit of one host, with isolates that share cores: the CPU is as busy as without one, and waits are short. */
import t from 'tap'
import { IS_WHOLE } from '../../../../test/support/form.ts'
import { FakeClock } from './fake-clock.ts'
import { clients, quantile, randomFrom } from './loads.ts'
import { SimulatedServer } from './simulated-server.ts'

/** @param costsMs for each function, the CPU times of its calls */
function underLoad(cores: number, costsMs: ReadonlyArray<readonly number[]>) {
  const clock = new FakeClock()
  const server = new SimulatedServer(clock, { cores, maxHosts: 1 })
  const random = randomFrom(1)
  const spanMs = Math.max(...costsMs.flat()) <= 1 ? 3_000 : 12_000
  const count = Math.ceil(400 / costsMs.length)
  for (const [index, costs] of costsMs.entries()) {
    clients(clock, server, { count, untilMs: spanMs, retryMs: 50 }, () => ({
      functionName: `f${index}`,
      cpuMs: [costs[Math.floor(random() * costs.length)]!],
    }))
  }
  clock.runUntil(spanMs / 2)
  server.p90Us.length = 0
  const usedMs = server.machine.usedMs
  clock.runUntil(spanMs)
  return {
    busyCores: (server.machine.usedMs - usedMs) / (spanMs / 2),
    p90Ms: quantile(server.p90Us, 0.5) / 1000,
    limit: server.limits[0]!,
  }
}

const OFTEN_20_US = Array.from({ length: 9 }, () => 0.02)

/** Each on as many cores as stand behind it; in the whole form on one and on two. */
const loads: Array<[string, ReadonlyArray<readonly number[]>, number]> = [
  ['one function of 20 µs', [[0.02]], 1],
  ['one function of 1 ms', [[1]], 2],
  ['one function of 200 ms', [[200]], 1],
  ['eight functions of 200 µs', Array.from({ length: 8 }, () => [0.2]), 2],
  ['eight functions of 10 ms', Array.from({ length: 8 }, () => [10]), 1],
  ['eight functions of 200 ms', Array.from({ length: 8 }, () => [200]), 2],
  ['a function of 20 µs and one of 200 ms', [[0.02], [200]], 1],
  [
    'functions of 20 µs that take 50 ms at times',
    [
      [...OFTEN_20_US, 50],
      [...OFTEN_20_US, 50],
    ],
    2,
  ],
  ['functions from 20 µs to 200 ms', [[0.02], [0.2], [1], [10], [50], [200]], 2],
]

for (const cores of [1, 2]) {
  for (const [what, costsMs, shortCores] of loads) {
    if (!IS_WHOLE && cores !== shortCores) continue
    t.test(`${what} on ${cores} cores: the CPU stays busy, and nobody waits for long`, async (t) => {
      const limited = underLoad(cores, costsMs)
      // A function keeps no more than one busy, with or without a limit.
      const mostCores = Math.min(cores, costsMs.length)
      t.ok(limited.busyCores >= 0.95 * mostCores, `${limited.busyCores} of ${mostCores} cores`)
      // Each function may run one call, however many there are: a round of all is the least that one waits.
      const roundMs = (Math.max(...costsMs.flat()) * costsMs.length) / Math.min(cores, costsMs.length)
      const goodMs = Math.max(5, 2 * Math.max(...costsMs.flat()), roundMs)
      t.ok(limited.p90Ms <= 2 * goodMs, `p90 of ${limited.p90Ms} ms`)
      t.ok(limited.limit >= 4)
    })
  }
}

/** The further down, the more calls. */
const SLOW_AND_QUICK = [
  [50, 1],
  [10, 0.2],
  [200, 0.02],
] as const

for (const [slowMs, quickMs] of IS_WHOLE ? SLOW_AND_QUICK : SLOW_AND_QUICK.slice(0, 1)) {
  t.test(`2 s after an overload by calls of ${slowMs} ms, calls of ${quickMs} ms get all of the core`, async (t) => {
    const clock = new FakeClock()
    const server = new SimulatedServer(clock, { maxHosts: 1 })
    const load = { count: 400, retryMs: 50 }
    clients(clock, server, { ...load, untilMs: 10_000 }, () => ({ functionName: 'f', cpuMs: [slowMs] }))
    clients(clock, server, { ...load, fromMs: 10_000, untilMs: 13_000 }, () => ({ functionName: 'f', cpuMs: [quickMs] }))
    clock.runUntil(10_000)
    t.equal(server.limits[0], 4)
    clock.runUntil(12_000)
    const answered = server.settled.answered
    clock.runUntil(13_000)
    t.ok(server.settled.answered - answered >= 0.95 * (1000 / quickMs))
  })
}
