import fc from 'fast-check'
import t from 'tap'
import { queueTimeoutMs, takeOrder } from '../src/index.ts'

const policy = { targetMs: 5, intervalMs: 100, maxQueueMs: 10_000 }

t.test('without a full CPU calls may wait for long: what they wait for is no core', async (t) => {
  t.equal(queueTimeoutMs({ isOverloaded: false, stoodMs: 60_000, gapMs: 1 }, policy), 10_000)
})

t.test('under overload an interval, and once the queue stands the target', async (t) => {
  t.equal(queueTimeoutMs({ isOverloaded: true, stoodMs: 99, gapMs: 1 }, policy), 100)
  t.equal(queueTimeoutMs({ isOverloaded: true, stoodMs: 100, gapMs: 1 }, policy), 5)
})

t.test('at least the time that one call takes to leave, or none could', async (t) => {
  t.equal(queueTimeoutMs({ isOverloaded: true, stoodMs: 100, gapMs: 40 }, policy), 40)
  t.equal(queueTimeoutMs({ isOverloaded: true, stoodMs: 0, gapMs: 400 }, policy), 400)
})

t.test('never longer than the longest wait, and never longer the longer the queue stands', async () => {
  const ms = fc.double({ min: 0, max: 1e5, noNaN: true })
  fc.assert(
    fc.property(fc.boolean(), ms, ms, ms, (isOverloaded, stoodMs, laterMs, gapMs) => {
      const nowMs = queueTimeoutMs({ isOverloaded, stoodMs, gapMs }, policy)
      return nowMs <= 10_000 && queueTimeoutMs({ isOverloaded, stoodMs: stoodMs + laterMs, gapMs }, policy) <= nowMs
    }),
  )
})

t.test('newest first only while the queue stands under overload', async (t) => {
  t.equal(takeOrder({ isOverloaded: true, stoodMs: 100 }, policy), 'newest')
  t.equal(takeOrder({ isOverloaded: true, stoodMs: 99 }, policy), 'oldest')
  t.equal(takeOrder({ isOverloaded: false, stoodMs: 5_000 }, policy), 'oldest')
})
