import t from 'tap'
import { StandingQueue } from '../src/index.ts'

const POLICY = { targetMs: 100, intervalMs: 1_000 }

t.test('a burst is none that stands: waits must be too long for a whole interval', async (t) => {
  const queue = new StandingQueue(POLICY)
  for (let nowMs = 0; nowMs < 900; nowMs += 5) queue.look(nowMs, nowMs - 300)
  t.ok(queue.lateMs(900) < POLICY.intervalMs)
  queue.look(905, 850)
  t.equal(queue.lateMs(905), 0, 'one look at short waits ends it')
})

t.test('it stands after an interval, and as long as calls are lost', async (t) => {
  const queue = new StandingQueue(POLICY)
  for (let nowMs = 0; nowMs <= 1_000; nowMs += 5) queue.look(nowMs, nowMs - 300)
  t.ok(queue.lateMs(1_000) >= POLICY.intervalMs)
  for (let nowMs = 1_005; nowMs < 3_000; nowMs += 5) {
    if (nowMs % 500 === 0) queue.lost(nowMs)
    queue.look(nowMs, nowMs - 90)
    t.ok(queue.lateMs(nowMs) >= POLICY.intervalMs)
  }
  queue.look(2_900 + POLICY.intervalMs, 2_900 + POLICY.intervalMs - 90)
  t.equal(queue.lateMs(4_000), 0)
})

t.test('clients that leave before the target show it as well', async (t) => {
  const queue = new StandingQueue(POLICY)
  for (let nowMs = 0; nowMs <= 1_200; nowMs += 5) {
    if (nowMs % 50 === 0) queue.lost(nowMs)
    queue.look(nowMs, nowMs - 60)
  }
  t.ok(queue.lateMs(1_200) >= POLICY.intervalMs)
})

t.test('a queue that is empty for an interval is a new one', async (t) => {
  const queue = new StandingQueue(POLICY)
  for (let nowMs = 0; nowMs <= 2_000; nowMs += 5) queue.look(nowMs, nowMs - 300)
  queue.look(2_005, undefined)
  queue.look(3_100, undefined)
  t.equal(queue.lateMs(3_100), 0)
})
