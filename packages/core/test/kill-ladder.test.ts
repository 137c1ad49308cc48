import fc from 'fast-check'
import t from 'tap'
import { climb, KILL_POLICY, RUNGS, type Evidence, type Rung } from '../src/kill-ladder.ts'

const milliseconds = fc.nat(1_000_000)
const evidence: fc.Arbitrary<Evidence> = fc.oneof(
  fc.record({
    of: fc.constant('entry' as const),
    cpuMs: milliseconds,
    cpuLimitMs: fc.integer({ min: 5, max: 900_000 }),
    ranMs: milliseconds,
    wallLimitMs: fc.integer({ min: 10, max: 900_000 }),
  }),
  fc.record({
    of: fc.constant('disposed' as const),
    cpuMs: fc.option(milliseconds, { nil: undefined }),
    endedMs: milliseconds,
    gaveUp: fc.boolean(),
  }),
  fc.record({
    of: fc.constant('host' as const),
    inFlight: fc.nat(100),
    silentMs: milliseconds,
    isOverdue: fc.boolean(),
    poisonedMs: fc.option(milliseconds, { nil: undefined }),
    idleMs: milliseconds,
    memoryBytes: milliseconds,
    memoryBudgetBytes: milliseconds,
  }),
)
const rung: fc.Arbitrary<Rung> = fc.constantFrom(...RUNGS)
const heightOf = (one: Rung): number => RUNGS.indexOf(one)

t.test('nobody climbs down, and whoever climbs is told why', async () => {
  fc.assert(
    fc.property(rung, evidence, (from, known) => {
      const step = climb(from, known)
      return step.reason === undefined ? step.rung === from : heightOf(step.rung) > heightOf(from)
    }),
  )
})

t.test('the same evidence twice leads no further', async () => {
  fc.assert(fc.property(rung, evidence, (from, known) => climb(climb(from, known).rung, known).reason === undefined))
})

t.test('an entry below its limits is never ended, and never kept far beyond one', async () => {
  fc.assert(
    fc.property(
      milliseconds,
      milliseconds,
      fc.integer({ min: 5 }),
      fc.integer({ min: 10 }),
      (cpuMs, ranMs, cpuLimitMs, wallLimitMs) => {
        const { rung: reached } = climb('running', { of: 'entry', cpuMs, ranMs, cpuLimitMs, wallLimitMs })
        const isOver = cpuMs >= cpuLimitMs + KILL_POLICY.cpuSlackMs || ranMs >= wallLimitMs + KILL_POLICY.wallGraceMs
        return (reached === 'ended') === isOver
      },
    ),
  )
})

t.test('an entry that used nothing is never ended for CPU, however long it waits for a core', async () => {
  fc.assert(
    fc.property(milliseconds, (ranMs) => {
      const step = climb('running', { of: 'entry', cpuMs: 0, ranMs, cpuLimitMs: 5, wallLimitMs: 100 })
      return step.reason !== 'cpu'
    }),
  )
})

t.test('the soft limits: no new calls, and nothing else', async (t) => {
  const entry = { of: 'entry', ranMs: 0, cpuLimitMs: 1000, wallLimitMs: 1000 } as const
  t.equal(climb('running', { ...entry, cpuMs: 799 }).rung, 'running')
  t.same(climb('running', { ...entry, cpuMs: 800 }), { rung: 'retiring', reason: 'cpu' })
  t.same(climb('retiring', { ...entry, cpuMs: 900 }), { rung: 'retiring' })
})

t.test('what is left of an isolate: by the CPU that its thread still uses, where that is known', async (t) => {
  const left = { of: 'disposed', gaveUp: false } as const
  t.equal(climb('ended', { ...left, cpuMs: 499, endedMs: 1_999 }).rung, 'ended', 'a thread that waits for a core is not stuck')
  t.same(climb('ended', { ...left, cpuMs: 500, endedMs: 500 }), { rung: 'poisoned', reason: 'stuck' })
  t.same(climb('ended', { ...left, cpuMs: 0, endedMs: 2_000 }), { rung: 'poisoned', reason: 'stuck' })
  t.same(climb('ended', { ...left, cpuMs: undefined, endedMs: 500 }), { rung: 'poisoned', reason: 'stuck' })
  t.same(climb('ended', { of: 'disposed', cpuMs: 0, endedMs: 0, gaveUp: true }), { rung: 'poisoned', reason: 'gave-up' })
})

t.test('hosts: silent ones with work are poisoned, then killed; poisoned ones when there is nothing left to save', async (t) => {
  const memory = { memoryBytes: 100, memoryBudgetBytes: 100 }
  const host = { of: 'host', inFlight: 1, silentMs: 0, isOverdue: false, poisonedMs: undefined, idleMs: 0, ...memory } as const
  t.equal(climb('running', { ...host, silentMs: 4_999 }).rung, 'running')
  t.same(climb('running', { ...host, silentMs: 5_000 }), { rung: 'poisoned', reason: 'silent' })
  t.equal(climb('running', { ...host, memoryBytes: 125 }).rung, 'running')
  t.same(climb('running', { ...host, memoryBytes: 126 }), { rung: 'poisoned', reason: 'memory' })
  t.equal(climb('running', { ...host, memoryBytes: 126, memoryBudgetBytes: 0 }).rung, 'running', 'there is no limit')
  t.same(climb('poisoned', { ...host, silentMs: 10_000 }), { rung: 'killed', reason: 'silent' })
  t.equal(climb('running', { ...host, inFlight: 0, silentMs: 100_000, idleMs: 100_000 }).rung, 'running', 'nobody waits')
  t.equal(
    climb('running', { ...host, inFlight: 0, idleMs: 600 }, { ...KILL_POLICY, drainMs: 0 }).rung,
    'running',
    'it is not poisoned',
  )
  t.same(climb('running', { ...host, isOverdue: true }), { rung: 'killed', reason: 'overdue' })
  t.equal(climb('poisoned', { ...host, poisonedMs: 9_999 }).rung, 'poisoned', 'its other calls go on')
  t.same(climb('poisoned', { ...host, poisonedMs: 10_000 }), { rung: 'killed', reason: 'drain-over' })
  t.same(climb('poisoned', { ...host, inFlight: 0, poisonedMs: 600, idleMs: 500 }), { rung: 'killed', reason: 'drained' })
  t.equal(climb('poisoned', { ...host, inFlight: 0, poisonedMs: 400, idleMs: 400 }).rung, 'poisoned')
})
