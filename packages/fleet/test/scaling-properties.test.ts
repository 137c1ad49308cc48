/** What holds whatever the load does. */
import fc from 'fast-check'
import t from 'tap'
import { runs } from '../../../test/support/form.ts'
import type { HostView } from '../src/scaling/scaling-policy.ts'
import { POLICY } from './support/scaling-views.ts'
import { follow, TICK_MS, type Demand, type Step } from './support/simple-fleet.ts'

const phase = fc.record({
  cores: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 10, noNaN: true })),
  machineCores: fc.constantFrom(1, 1.5, 2, 4, 8),
  ticks: fc.integer({ min: 1, max: 400 }),
  kills: fc.boolean(),
})
const demands = fc
  .array(phase, { minLength: 1, maxLength: 12, size: 'max' })
  .map((phases) =>
    phases.flatMap(({ ticks, kills, ...demand }): Demand[] =>
      Array.from({ length: ticks }, (_, tick) => ({ ...demand, kills: kills && tick === 0 })),
    ),
  )
const policy = fc
  .record({ minHosts: fc.integer({ min: 1, max: 3 }), more: fc.nat(5), growPauseMs: fc.constantFrom(0, 5_000, 20_000) })
  .map(({ minHosts, more, growPauseMs }) => ({ ...POLICY, minHosts, maxHosts: minHosts + more, growPauseMs }))

/** @param holds whether it holds for a step and those before it */
function always(holds: (step: Step, earlier: readonly Step[], policy: typeof POLICY) => boolean): void {
  fc.assert(
    fc.property(demands, policy, (demands, policy) => {
      const steps = follow(policy, demands)
      return steps.every((step, index) => step.decision.action === 'none' || holds(step, steps.slice(0, index), policy))
    }),
    { numRuns: runs(100) },
  )
}

const isFull = ({ panic, steady }: HostView): boolean =>
  (panic.cpuCores >= 0.95 && panic.delayedShare >= 0.8) || (steady.cpuCores >= 0.8 && steady.delayedShare >= 0.6)

t.test('never more than the most hosts, and never fewer than the least', async () => {
  always(({ decision, before }, _, { minHosts, maxHosts }) =>
    decision.action === 'grow' ? before.length + decision.hosts <= maxHosts : before.length - 1 >= minHosts,
  )
})

t.test('it grows only if all hosts are saturated, or to the minimum', async () => {
  always(({ decision, before }, _, { minHosts }) =>
    decision.action === 'grow' && decision.reason !== 'below-minimum'
      ? before.every(isFull)
      : decision.action === 'shrink' || before.length < minHosts,
  )
})

t.test('it grows step by step: not while a host starts, and with a pause unless in panic', async () => {
  always(({ atMs, decision, before }, earlier, { growPauseMs }) => {
    if (decision.action !== 'grow' || decision.reason === 'below-minimum') return true
    if (before.some(({ state, readySinceMs }) => state === 'starting' || atMs - readySinceMs < 2_000)) return false
    const doubles = decision.reason === 'panic' && decision.because.readyHosts <= 2
    return doubles || !earlier.some((past) => past.decision.action === 'grow' && atMs - past.atMs < growPauseMs)
  })
})

t.test('it does not shrink within the window of a growth, nor twice within the pause', async () => {
  always(({ atMs, decision }, earlier, { shrinkWindowMs, shrinkPauseMs }) => {
    if (decision.action === 'grow') return true
    return !earlier.some(
      (past) =>
        (past.decision.action === 'grow' && atMs - past.atMs < shrinkWindowMs) ||
        (past.decision.action === 'shrink' && atMs - past.atMs < shrinkPauseMs),
    )
  })
})

t.test('it does not shrink by what was needed within the window', async () => {
  always(({ atMs, decision, before }, earlier, { shrinkWindowMs }) => {
    if (decision.action === 'grow') return true
    const needed = earlier
      .filter((past) => atMs - past.atMs < shrinkWindowMs)
      .map(({ before }) => Math.ceil(before.reduce((sum, { steady }) => sum + steady.cpuCores, 0) / 0.6))
    return Math.max(0, ...needed) < before.length
  })
})

t.test('without a spare core it does not grow', async () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 10, noNaN: true }), fc.integer({ min: 1, max: 1000 }), (cores, ticks) => {
      const steps = follow(
        POLICY,
        Array.from({ length: ticks }, () => ({ cores, machineCores: 1 })),
      )
      return steps.every(({ decision }) => decision.action !== 'grow' || decision.reason === 'below-minimum')
    }),
    { numRuns: runs(100) },
  )
})

t.test('a square wave of up to a minute, of up to two cores, changes the hosts at most once a period', async () => {
  const wave = fc.record({
    lowCores: fc.double({ min: 0, max: 2, noNaN: true }),
    highCores: fc.double({ min: 0, max: 2, noNaN: true }),
    periodTicks: fc.integer({ min: 40, max: 60_000 / TICK_MS }),
    lowShare: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  fc.assert(
    fc.property(wave, ({ lowCores, highCores, periodTicks, lowShare }) => {
      const demands = Array.from({ length: periodTicks * 6 }, (_, tick) => ({
        cores: tick % periodTicks < lowShare * periodTicks ? lowCores : highCores,
        machineCores: 4,
      }))
      const changes = follow({ ...POLICY, maxHosts: 2 }, demands).filter(
        ({ decision }) => decision.action === 'shrink' || (decision.action === 'grow' && decision.reason !== 'below-minimum'),
      )
      const periods = changes.map(({ atMs }) => Math.floor(atMs / TICK_MS / periodTicks))
      return new Set(periods).size === periods.length
    }),
    { numRuns: runs(100) },
  )
})
