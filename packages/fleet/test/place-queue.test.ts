import type { Call, CarpoolError } from '@carpool/core'
import t from 'tap'
import { routedCall } from '../../../test/support/call.ts'
import { PlaceQueue } from '../src/placement/place-queue.ts'

interface Wait {
  readonly resolve: (place: string | undefined) => void
  readonly reject: (error: CarpoolError) => void
}

/** A queue on a clock that the test sets. */
function makeQueue({ maxQueued = 100 } = {}) {
  const state = { nowMs: 0, isOverloaded: false, hasHost: true }
  const waits = new Map<Call, Wait>()
  const queue = new PlaceQueue({
    maxQueued,
    timeouts: { targetMs: 5, intervalMs: 100, maxQueueMs: 10_000 },
    clock: () => state.nowMs,
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
  /** Gives places to those that the test takes in. */
  const dispatch = (hasPlace: (name: string) => boolean, onPlaced: (name: string) => void = () => {}): void => {
    queue.dispatch(hasPlace, (call) => {
      onPlaced(call.functionName)
      waits.get(call)?.resolve(call.functionName)
      return true
    })
  }
  return { state, queue, wait, waitWith, dispatch }
}

t.test('calls get places in order, and those of other functions in between', async (t) => {
  const { queue, wait, dispatch } = makeQueue()
  const calls = ['a', 'a', 'a', 'b'].map((name) => wait(name))
  const order: string[] = []
  let places = 3
  dispatch(
    () => places > 0,
    (functionName) => {
      places--
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

t.test('without evidence of a full CPU calls wait as long as they may', async (t) => {
  const { state, wait } = makeQueue()
  const call = wait('a')
  state.nowMs = 9_999
  state.isOverloaded = false
  const early = await Promise.race([call, new Promise((resolve) => setImmediate(() => resolve('waits')))])
  t.equal(early, 'waits')
  state.nowMs = 10_000
  await t.rejects(call, { code: 'saturated', message: /waited for 10000 ms/ })
})

/** Lets the queue look at what waits. */
async function sweeps(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 15))
}

t.test('under overload what waits too long is refused for those that still come, and a burst is not', async (t) => {
  const { state, queue, wait } = makeQueue()
  state.isOverloaded = true
  const first = wait('a')
  for (let nowMs = 10; nowMs <= 200; nowMs += 10) {
    state.nowMs = nowMs
    await sweeps()
  }
  t.ok(queue.stands)
  t.equal(queue.size, 1, 'nobody came, so nobody is refused')
  void wait('a')
  await t.rejects(first, { code: 'saturated', message: /waited for/ })
  t.equal(queue.size, 1)
})

t.test('under overload a function that has little waiting is not refused for what others have', async (t) => {
  const { state, queue, wait } = makeQueue()
  state.isOverloaded = true
  const refused: string[] = []
  const waitFor = (name: string): void => {
    wait(name).catch(() => refused.push(name))
  }
  for (let nowMs = 0; nowMs < 200; nowMs += 5) {
    state.nowMs = nowMs
    for (let call = 0; call < 3; call++) waitFor('flood')
    if (nowMs === 150) waitFor('quiet')
    await sweeps()
  }
  t.ok(refused.includes('flood'))
  t.notOk(refused.includes('quiet'), 'it has waited for 45 ms, with a target of 5')
  state.nowMs = 260
  waitFor('flood')
  await sweeps()
  t.ok(refused.includes('quiet'), 'but no longer than the interval')
  queue.close()
})

t.test('what waits in vain is told so, for want of a host if there is none', async (t) => {
  const { state, wait } = makeQueue()
  state.hasHost = false
  const call = wait('a')
  state.nowMs = 10_200
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
