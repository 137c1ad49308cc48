import fc from 'fast-check'
import t from 'tap'
import { laneLimit } from '../src/placement/lane-limit.ts'

t.test('slow calls wait one behind the other, quick ones for twice the target', async (t) => {
  t.equal(laneLimit(200, 5), 2)
  t.equal(laneLimit(1, 5), 11)
  t.equal(laneLimit(0.02, 5), 501)
  t.ok(Number.isFinite(laneLimit(0, 5)))
})

t.test('a function that has not run yet may run a few times', async (t) => {
  t.equal(laneLimit(undefined, 5), 4)
})

t.test('a full lane always shows as delay above the target', async () => {
  const ms = fc.double({ min: 0.001, max: 1000, noNaN: true })
  fc.assert(fc.property(ms, ms, (costMs, targetMs) => (laneLimit(costMs, targetMs) - 1) * costMs > targetMs))
})
