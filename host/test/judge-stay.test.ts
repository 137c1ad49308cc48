import fc from 'fast-check'
import t from 'tap'
import { ESTIMATE_SLACK_MS, judgeStay, WALL_GRACE_MS, type StaySample } from '../src/judge-stay.ts'

const milliseconds = fc.nat(1_000_000)
const sample: fc.Arbitrary<StaySample> = fc.record({
  spentMs: milliseconds,
  usedMs: milliseconds,
  ranMs: milliseconds,
  cpuLimitMs: fc.integer({ min: 5, max: 900_000 }),
  wallLimitMs: fc.integer({ min: 10, max: 900_000 }),
})

t.test('nobody is ended below a limit, nor kept far beyond one', async () => {
  fc.assert(
    fc.property(sample, (sample) => {
      const overCpuMs = sample.spentMs + sample.usedMs - sample.cpuLimitMs
      const overWallMs = sample.ranMs - sample.wallLimitMs
      const verdict = judgeStay(sample)
      if (verdict === 'over-cpu') return overCpuMs >= ESTIMATE_SLACK_MS
      if (verdict === 'stuck') return overWallMs >= WALL_GRACE_MS && overCpuMs < ESTIMATE_SLACK_MS
      return overCpuMs < ESTIMATE_SLACK_MS && overWallMs < WALL_GRACE_MS
    }),
  )
})

t.test('whoever is ended is ended as well after using more or running longer', async () => {
  fc.assert(
    fc.property(sample, fc.constantFrom('spentMs', 'usedMs', 'ranMs'), milliseconds, (sample, what, moreMs) => {
      if (judgeStay(sample) === 'fine') return true
      return judgeStay({ ...sample, [what]: sample[what] + moreMs }) !== 'fine'
    }),
  )
})

t.test('a stay that used nothing is never over its CPU limit, however long it waits for a core', async () => {
  fc.assert(fc.property(sample, (sample) => judgeStay({ ...sample, spentMs: 0, usedMs: 0 }) !== 'over-cpu'))
})

t.test('what was used before the stay counts', async (t) => {
  const limits = { ranMs: 0, cpuLimitMs: 100, wallLimitMs: 1000 }
  t.equal(judgeStay({ ...limits, spentMs: 0, usedMs: 109 }), 'fine')
  t.equal(judgeStay({ ...limits, spentMs: 60, usedMs: 49 }), 'fine')
  t.equal(judgeStay({ ...limits, spentMs: 60, usedMs: 50 }), 'over-cpu')
  t.equal(judgeStay({ ...limits, spentMs: 0, usedMs: 0, ranMs: 1024 }), 'fine')
  t.equal(judgeStay({ ...limits, spentMs: 0, usedMs: 0, ranMs: 1025 }), 'stuck')
})
