import { CarpoolError, type Call } from '@carpool/core'
import fc from 'fast-check'
import t from 'tap'
import { routedCall } from '../../../test/support/call.ts'
import { CallQueue, queueTimeoutMs, StandingQueue, takeOrder } from '../src/call-queue.ts'

interface Wait {
  readonly resolve: (functionName: string | undefined) => void
  readonly reject: (error: CarpoolError) => void
}

const POLICY = { targetMs: 5, intervalMs: 100, maxQueueMs: 10_000 }

/** A queue on a clock that the test sets; `sweep` looks for calls that have waited too long, as the queue's timer does. */
function makeQueue({ maxQueued = 100 } = {}) {
  const state = { nowMs: 0, isOverloaded: false, hasHost: true }
  let sweepNow: (() => void) | undefined
  const waits = new Map<Call, Wait>()
  const queue = new CallQueue({
    maxQueued,
    policy: POLICY,
    clock: () => state.nowMs,
    every: (_periodMs, sweep) => {
      sweepNow = sweep
      return () => (sweepNow = undefined)
    },
    isOverloaded: () => state.isOverloaded,
    hasHost: () => state.hasHost,
    costMs: () => 1,
    onCanceled: (call) => waits.get(call)?.resolve(undefined),
    onRefused: (call, error) => waits.get(call)?.reject(error),
  })
  t.teardown(() => queue.close())
  const waitWith = (call: Call): Promise<string | undefined> => {
    const { promise, resolve, reject } = Promise.withResolvers<string | undefined>()
    promise.catch(() => {})
    waits.set(call, { resolve, reject })
    queue.push(call)
    return promise
  }
  const wait = (functionName: string): Promise<string | undefined> => waitWith(routedCall(functionName))
  const sweepAt = (nowMs: number): void => {
    state.nowMs = nowMs
    sweepNow?.()
  }
  /** Sends the calls of functions that the test has room for. */
  const dispatch = (hasRoom: (name: string) => boolean, onSent: (name: string) => void = () => {}): void => {
    queue.dispatch(hasRoom, (call) => {
      onSent(call.functionName)
      waits.get(call)?.resolve(call.functionName)
      return true
    })
  }
  return { state, queue, wait, waitWith, dispatch, sweepAt, isSweeping: () => sweepNow !== undefined }
}

t.test('calls leave in order, and those of other functions in between', async (t) => {
  const { queue, wait, dispatch } = makeQueue()
  const calls = ['a', 'a', 'a', 'b'].map((name) => wait(name))
  const order: string[] = []
  let slots = 3
  dispatch(
    () => slots > 0,
    (functionName) => {
      slots--
      order.push(functionName)
    },
  )
  t.same(order, ['a', 'b', 'a'])
  t.equal(queue.size, 1)
  t.same(await Promise.all([calls[0], calls[1], calls[3]]), ['a', 'a', 'b'])
})

t.test('a client that leaves takes its call along', async (t) => {
  const { queue, waitWith, dispatch } = makeQueue()
  const call = routedCall('a')
  const waits = waitWith(call)
  call.cancel()
  t.equal(await waits, undefined)
  t.equal(queue.size, 0)
  dispatch(
    () => true,
    () => {
      throw new Error('nobody waits')
    },
  )
})

t.test('a queue stands if clients keep leaving it, however soon they do', async (t) => {
  const { queue, sweepAt } = makeQueue()
  let before = routedCall('a')
  queue.push(before)
  for (let nowMs = 0; nowMs <= 200; nowMs += 4) {
    sweepAt(nowMs)
    const call = routedCall('a')
    queue.push(call)
    before.cancel()
    before = call
  }
  t.equal(queue.size, 1)
  t.ok(queue.stands)
})

t.test('calls of a function that is disabled are refused, and nobody else', async (t) => {
  const { queue, wait } = makeQueue()
  const [disabled, other] = [wait('disabled'), wait('other')]
  queue.refuseOf('disabled', new CarpoolError('function-disabled', 'It was disabled.'))
  await t.rejects(disabled, { code: 'function-disabled' })
  t.equal(queue.size, 1)
  queue.close()
  await t.rejects(other, { code: 'draining' })
})

t.test('without evidence of a full CPU calls wait as long as they may', async (t) => {
  const { queue, wait, sweepAt, isSweeping } = makeQueue()
  const call = wait('a')
  sweepAt(9_999)
  t.equal(queue.size, 1)
  t.ok(isSweeping())
  sweepAt(10_000)
  await t.rejects(call, { code: 'saturated', message: /waited for 10000 ms/ })
  t.notOk(isSweeping(), 'an empty queue has no timer')
})

t.test('a call waits no longer than its wall limit, and for as long as it takes to replace a host', async (t) => {
  const { waitWith, sweepAt, queue } = makeQueue()
  const short = waitWith(routedCall('a', { limits: { wallMs: 1_000 } }))
  const long = waitWith(routedCall('a', { limits: { wallMs: 5_000 } }))
  sweepAt(2_999)
  t.equal(queue.size, 2)
  sweepAt(3_000)
  await t.rejects(short, { code: 'saturated', message: /waited for 3000 ms/ })
  sweepAt(4_999)
  t.equal(queue.size, 1)
  sweepAt(5_000)
  await t.rejects(long, { code: 'saturated', message: /waited for 5000 ms/ })
})

t.test('one sweep refuses a few calls, or it would hold up the event loop', async (t) => {
  const { queue, wait, sweepAt } = makeQueue({ maxQueued: 200 })
  for (let call = 0; call < 120; call++) void wait('a')
  sweepAt(10_000)
  t.equal(queue.size, 70)
  sweepAt(10_000)
  t.equal(queue.size, 20)
})

t.test('under overload what waits too long is refused for those that still come, and a burst is not', async (t) => {
  const { state, queue, wait, sweepAt } = makeQueue()
  state.isOverloaded = true
  const first = wait('a')
  for (let nowMs = 10; nowMs <= 200; nowMs += 10) sweepAt(nowMs)
  t.ok(queue.stands)
  t.equal(queue.size, 1, 'nobody came, so nobody is refused')
  void wait('a')
  sweepAt(200)
  await t.rejects(first, { code: 'saturated', message: /waited for/ })
  t.equal(queue.size, 1)
})

t.test('while the queue stands under overload the newest call of a function leaves first', async (t) => {
  const { state, queue, sweepAt } = makeQueue()
  const calls = [routedCall('a'), routedCall('a'), routedCall('a')]
  for (const call of calls) queue.push(call)
  const sendOne = (): number => {
    let sent = -1
    queue.dispatch(
      () => sent === -1,
      (call) => (sent = calls.findIndex((one) => one === call)) >= 0,
    )
    return sent
  }
  t.equal(sendOne(), 0)
  state.isOverloaded = true
  for (let nowMs = 10; nowMs <= 200; nowMs += 10) sweepAt(nowMs)
  t.equal(sendOne(), 2)
  t.equal(sendOne(), 1)
})

/** Runs the callbacks of promises that are settled. */
async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

t.test('under overload a function that has little waiting is not refused for what others have', async (t) => {
  const { state, queue, wait, sweepAt } = makeQueue()
  state.isOverloaded = true
  const refused: string[] = []
  const waitFor = (name: string): void => {
    wait(name).catch(() => refused.push(name))
  }
  for (let nowMs = 0; nowMs < 200; nowMs += 5) {
    state.nowMs = nowMs
    for (let call = 0; call < 3; call++) waitFor('flood')
    if (nowMs === 150) waitFor('quiet')
    sweepAt(nowMs)
  }
  await settled()
  t.ok(refused.includes('flood'))
  t.notOk(refused.includes('quiet'), 'it has waited for 45 ms, with a target of 5')
  state.nowMs = 260
  waitFor('flood')
  sweepAt(260)
  await settled()
  t.ok(refused.includes('quiet'), 'but no longer than the interval')
  queue.close()
})

t.test('what waits in vain is told so, for want of a host if there is none', async (t) => {
  const { state, wait, sweepAt } = makeQueue()
  state.hasHost = false
  const call = wait('a')
  sweepAt(10_200)
  await t.rejects(call, { code: 'no-host' })
})

t.test('a full queue pushes out the longest waiting call of the function with the most', async (t) => {
  const { queue, wait, dispatch } = makeQueue({ maxQueued: 2 })
  const [first] = [wait('flood'), wait('flood')]
  const quiet = wait('quiet')
  await t.rejects(first, { code: 'saturated', message: /limit of 2 waiting calls/ })
  t.equal(queue.size, 2)
  dispatch((name) => name === 'quiet')
  t.equal(await quiet, 'quiet')
})

t.test('what waits at the end is refused', async (t) => {
  const { queue, wait } = makeQueue()
  const call = wait('a')
  queue.close()
  await t.rejects(call, { code: 'draining' })
})

const STANDING = { targetMs: 100, intervalMs: 1_000 }

t.test('a burst is none that stands: waits must be too long for a whole interval', async (t) => {
  const queue = new StandingQueue(STANDING)
  for (let nowMs = 0; nowMs < 900; nowMs += 5) queue.look(nowMs, nowMs - 300)
  t.ok(queue.lateMs(900) < STANDING.intervalMs)
  queue.look(905, 850)
  t.equal(queue.lateMs(905), 0, 'one look at short waits ends it')
})

t.test('it stands after an interval, and as long as calls are lost', async (t) => {
  const queue = new StandingQueue(STANDING)
  for (let nowMs = 0; nowMs <= 1_000; nowMs += 5) queue.look(nowMs, nowMs - 300)
  t.ok(queue.lateMs(1_000) >= STANDING.intervalMs)
  for (let nowMs = 1_005; nowMs < 3_000; nowMs += 5) {
    if (nowMs % 500 === 0) queue.lost(nowMs)
    queue.look(nowMs, nowMs - 90)
    t.ok(queue.lateMs(nowMs) >= STANDING.intervalMs)
  }
  queue.look(2_900 + STANDING.intervalMs, 2_900 + STANDING.intervalMs - 90)
  t.equal(queue.lateMs(4_000), 0)
})

t.test('clients that leave before the target show it as well', async (t) => {
  const queue = new StandingQueue(STANDING)
  for (let nowMs = 0; nowMs <= 1_200; nowMs += 5) {
    if (nowMs % 50 === 0) queue.lost(nowMs)
    queue.look(nowMs, nowMs - 60)
  }
  t.ok(queue.lateMs(1_200) >= STANDING.intervalMs)
})

t.test('a queue that is empty for an interval is a new one', async (t) => {
  const queue = new StandingQueue(STANDING)
  for (let nowMs = 0; nowMs <= 2_000; nowMs += 5) queue.look(nowMs, nowMs - 300)
  queue.look(2_005, undefined)
  queue.look(3_100, undefined)
  t.equal(queue.lateMs(3_100), 0)
})

t.test('without a full CPU calls may wait for long: what they wait for is no core', async (t) => {
  t.equal(queueTimeoutMs({ isOverloaded: false, lateMs: 60_000 }, POLICY), 10_000)
})

t.test('under overload an interval, and once the queue stands the target', async (t) => {
  t.equal(queueTimeoutMs({ isOverloaded: true, lateMs: 99 }, POLICY), 100)
  t.equal(queueTimeoutMs({ isOverloaded: true, lateMs: 100 }, POLICY), 5)
})

t.test('never longer than the longest wait, and never longer the longer the queue stands', async () => {
  const ms = fc.double({ min: 0, max: 1e5, noNaN: true })
  fc.assert(
    fc.property(fc.boolean(), ms, ms, (isOverloaded, lateMs, laterMs) => {
      const nowMs = queueTimeoutMs({ isOverloaded, lateMs }, POLICY)
      return nowMs <= 10_000 && queueTimeoutMs({ isOverloaded, lateMs: lateMs + laterMs }, POLICY) <= nowMs
    }),
  )
})

t.test('newest first only while the queue stands under overload', async (t) => {
  t.equal(takeOrder({ isOverloaded: true, lateMs: 100 }, POLICY), 'newest')
  t.equal(takeOrder({ isOverloaded: true, lateMs: 99 }, POLICY), 'oldest')
  t.equal(takeOrder({ isOverloaded: false, lateMs: 5_000 }, POLICY), 'oldest')
})

t.test('a function that is alone is shed at the target, however little it has waiting', async (t) => {
  const { state, wait, sweepAt } = makeQueue()
  state.isOverloaded = true
  const refused: string[] = []
  for (let nowMs = 0; nowMs <= 200; nowMs += 5) {
    state.nowMs = nowMs
    wait('alone').catch(() => refused.push('alone'))
    // Few wait at any time: their work fits into the target.
    if (nowMs % 20 === 0) sweepAt(nowMs)
  }
  sweepAt(205)
  await settled()
  t.ok(refused.length > 0)
})
