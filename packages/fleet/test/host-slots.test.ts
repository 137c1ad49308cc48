import fc from 'fast-check'
import t from 'tap'
import { HostSlots, type SlotLease } from '../src/host-slots.ts'

t.test('a lease is given back once, and it is told', async (t) => {
  let freed = 0
  const slots = new HostSlots(2, () => freed++)
  const lease = slots.take('a')
  t.same([slots.running, slots.runningOf('a')], [1, 1])
  lease.release()
  lease.release()
  t.same([slots.running, slots.runningOf('a'), freed], [0, 0, 1])
})

t.test('a lane has a limit of its own', async (t) => {
  const slots = new HostSlots(64, () => {})
  slots.take('a')
  slots.take('a')
  t.notOk(slots.hasRoom('a', 2))
  t.ok(slots.hasRoom('a', 3))
})

t.test('what goes on again counts against the limit', async (t) => {
  const slots = new HostSlots(4, () => {})
  slots.resumed = 4
  t.ok(slots.isFull)
  t.ok(slots.hasRoom('a', 9), 'its share is its own')
  for (let count = 0; count < 4; count++) slots.take('a')
  t.notOk(slots.hasRoom('a', 9))
  t.ok(slots.hasRoom('b', 9))
})

t.test('counts never drift, and a function below its share has room whatever others do', async () => {
  const step = fc.record({ functionName: fc.constantFrom('a', 'b', 'c', 'd'), takes: fc.boolean() })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), fc.array(step, { maxLength: 200 }), (limit, steps) => {
      const slots = new HostSlots(limit, () => {})
      const held = new Map<string, SlotLease[]>()
      for (const { functionName, takes } of steps) {
        const leases = held.get(functionName) ?? []
        held.set(functionName, leases)
        if (takes && slots.hasRoom(functionName, 9)) leases.push(slots.take(functionName))
        else leases.shift()?.release()
        const counts = [...held.values()].map(({ length }) => length)
        const sum = counts.reduce((total, count) => total + count, 0)
        if (slots.running !== sum) return false
        if (!slots.hasRoom('newcomer', 9)) return false
      }
      return true
    }),
  )
})
