import fc from 'fast-check'
import t from 'tap'
import type { Lease } from '@carpool/core'
import { HostSlots } from '../src/placement/host-slots.ts'
import type { Lane } from '../src/placement/lanes.ts'

/** A function of which nothing is known. */
function laneOf(functionName: string): Lane {
  return { functionName, costMs: undefined, wallMs: 30_000 }
}

t.test('a lease is given back once, and it is told', async (t) => {
  let freed = 0
  const slots = new HostSlots({ limit: 2, targetMs: 5 }, () => freed++)
  const lease = slots.take(laneOf('a'))
  t.same([slots.running, slots.runningOf('a')], [1, 1])
  lease.release()
  lease.release()
  t.same([slots.running, slots.runningOf('a'), freed], [0, 0, 1])
})

t.test('a lane takes no more than it can run soon', async (t) => {
  const slots = new HostSlots({ limit: 64, targetMs: 5 }, () => {})
  const slow = { functionName: 'slow', costMs: 200, wallMs: 30_000 }
  slots.take(slow)
  t.ok(slots.hasRoom(slow))
  slots.take(slow)
  t.notOk(slots.hasRoom(slow))
  t.ok(slots.hasRoom(laneOf('other')))
})

t.test('a host at its limit takes on what is hardly any work, as long as it is known', async (t) => {
  const slots = new HostSlots({ limit: 4, targetMs: 5 }, () => {})
  const short = { functionName: 'short', costMs: 0.0625, wallMs: 30_000 }
  const leases = Array.from({ length: 50 }, () => slots.take(short))
  t.ok(slots.hasRoom(short))
  t.notOk(slots.isFull)
  const unknown = slots.take(laneOf('unknown'))
  t.notOk(slots.hasRoom(short))
  unknown.release()
  t.ok(slots.hasRoom(short))
  for (let count = 0; count < 29; count++) slots.take(short)
  t.ok(slots.hasRoom(short))
  slots.take(short)
  t.notOk(slots.hasRoom(short))
  t.ok(slots.isFull)
  for (const lease of leases) lease.release()
  t.ok(slots.hasRoom(short))
})

t.test('a lane holds no more calls than it can run within their wall limit, those that wait included', async (t) => {
  const slots = new HostSlots({ limit: 64, targetMs: 5 }, () => {})
  const lane = { functionName: 'waits-then-burns', costMs: 100, wallMs: 1_000 }
  const leases = Array.from({ length: 5 }, () => {
    t.ok(slots.hasRoom(lane))
    const lease = slots.take(lane)
    lease.release()
    return lease
  })
  t.equal(slots.running, 0)
  t.notOk(slots.hasRoom(lane))
  t.ok(slots.hasRoom({ ...lane, functionName: 'other' }))
  leases[0]?.end()
  leases[0]?.end()
  t.ok(slots.hasRoom(lane))
  slots.take(lane)
  t.notOk(slots.hasRoom(lane))
})

t.test('what goes on again counts against the limit', async (t) => {
  const slots = new HostSlots({ limit: 4, targetMs: 5 }, () => {})
  slots.resumed = 4
  t.ok(slots.isFull)
  t.ok(slots.hasRoom(laneOf('a')), 'its share is its own')
  for (let count = 0; count < 4; count++) slots.take(laneOf('a'))
  t.notOk(slots.hasRoom(laneOf('a')))
  t.ok(slots.hasRoom(laneOf('b')))
})

t.test('counts never drift, and a function below its share has room whatever others do', async () => {
  const step = fc.record({ functionName: fc.constantFrom('a', 'b', 'c', 'd'), takes: fc.boolean() })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), fc.array(step, { maxLength: 200 }), (limit, steps) => {
      const slots = new HostSlots({ limit, targetMs: 5 }, () => {})
      const held = new Map<string, Lease[]>()
      for (const { functionName, takes } of steps) {
        const leases = held.get(functionName) ?? []
        held.set(functionName, leases)
        if (takes && slots.hasRoom(laneOf(functionName))) leases.push(slots.take(laneOf(functionName)))
        else leases.shift()?.release()
        const counts = [...held.values()].map(({ length }) => length)
        const sum = counts.reduce((total, count) => total + count, 0)
        if (slots.running !== sum) return false
        if (!slots.hasRoom(laneOf('newcomer'))) return false
      }
      return true
    }),
  )
})
