import fc from 'fast-check'
import t from 'tap'
import type { Slot } from '@carpool/core'
import { HostSlots, type Flow } from '../src/placement/host-slots.ts'

function slotsOf(initial: number, onRelease: () => void = () => {}): HostSlots {
  return new HostSlots({ initial, min: 1, max: 1_000, targetMs: 5 }, onRelease)
}

/** A function of which nothing is known. */
function flowOf(functionName: string, owner = 'o'): Flow {
  return { owner, functionName, costMs: undefined, wallMs: 30_000 }
}

t.test('a slot is given back once, and it is told', async (t) => {
  let freed = 0
  const slots = slotsOf(2, () => freed++)
  const slot = slots.take(flowOf('a'))
  t.same([slots.running, slots.runningOf('a')], [1, 1])
  slot.release()
  slot.release()
  t.same([slots.running, slots.runningOf('a'), freed], [0, 0, 1])
})

t.test('a flow takes no more than it can run soon', async (t) => {
  const slots = slotsOf(64)
  const slow = { owner: 'o', functionName: 'slow', costMs: 200, wallMs: 30_000 }
  slots.take(slow)
  t.ok(slots.hasRoom(slow))
  slots.take(slow)
  t.notOk(slots.hasRoom(slow))
  t.ok(slots.hasRoom(flowOf('other')))
})

t.test('a host at its limit takes on what is hardly any work, as long as it is known', async (t) => {
  const slots = slotsOf(4)
  const short = { owner: 'o', functionName: 'short', costMs: 0.0625, wallMs: 30_000 }
  const held = Array.from({ length: 50 }, () => slots.take(short))
  t.ok(slots.hasRoom(short))
  t.notOk(slots.isFull)
  const unknown = slots.take(flowOf('unknown'))
  t.notOk(slots.hasRoom(short))
  unknown.release()
  t.ok(slots.hasRoom(short))
  for (let count = 0; count < 29; count++) slots.take(short)
  t.ok(slots.hasRoom(short))
  slots.take(short)
  t.notOk(slots.hasRoom(short))
  t.ok(slots.isFull)
  for (const slot of held) slot.release()
  t.ok(slots.hasRoom(short))
})

t.test('a flow holds no more calls than it can run within their wall limit, those that wait included', async (t) => {
  const slots = slotsOf(64)
  const flow = { owner: 'o', functionName: 'waits-then-burns', costMs: 100, wallMs: 1_000 }
  const held = Array.from({ length: 5 }, () => {
    t.ok(slots.hasRoom(flow))
    const slot = slots.take(flow)
    slot.release()
    return slot
  })
  t.equal(slots.running, 0)
  t.notOk(slots.hasRoom(flow))
  t.ok(slots.hasRoom({ ...flow, functionName: 'other' }))
  held[0]?.end()
  held[0]?.end()
  t.ok(slots.hasRoom(flow))
  slots.take(flow)
  t.notOk(slots.hasRoom(flow))
})

t.test('what goes on again counts against the limit', async (t) => {
  const slots = slotsOf(4)
  slots.resumed = 4
  t.ok(slots.isFull)
  t.ok(slots.hasRoom(flowOf('a')), 'its share is its own')
  for (let count = 0; count < 4; count++) slots.take(flowOf('a'))
  t.notOk(slots.hasRoom(flowOf('a')))
  t.ok(slots.hasRoom(flowOf('b')))
})

t.test('counts never drift, and a function below its share has room whatever others do', async () => {
  const step = fc.record({ functionName: fc.constantFrom('a', 'b', 'c', 'd'), takes: fc.boolean() })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), fc.array(step, { maxLength: 200 }), (limit, steps) => {
      const slots = slotsOf(limit)
      const held = new Map<string, Slot[]>()
      for (const { functionName, takes } of steps) {
        const ofFunction = held.get(functionName) ?? []
        held.set(functionName, ofFunction)
        if (takes && slots.hasRoom(flowOf(functionName))) ofFunction.push(slots.take(flowOf(functionName)))
        else ofFunction.shift()?.release()
        const counts = [...held.values()].map(({ length }) => length)
        const sum = counts.reduce((total, count) => total + count, 0)
        if (slots.running !== sum) return false
        if (!slots.hasRoom(flowOf('newcomer'))) return false
      }
      return true
    }),
  )
})

t.test('at the limit an owner of many functions has the same share of it as an owner of one', async (t) => {
  const slots = slotsOf(12)
  const many = Array.from({ length: 6 }, (_, index) => flowOf(`many-${index}`, 'many'))
  for (const flow of many) for (let count = 0; count < 2; count++) slots.take(flow)
  t.notOk(slots.hasRoom(many[0]!))
  let ofOne = 0
  while (slots.hasRoom({ ...flowOf('one', 'one'), costMs: 1 })) {
    slots.take({ ...flowOf('one', 'one'), costMs: 1 })
    ofOne++
  }
  t.equal(ofOne, 6, 'half of the limit')
})

t.test('a function that was deleted counts until its calls end, and then not at all', async (t) => {
  const slots = slotsOf(4)
  const slot = slots.take(flowOf('gone', 'x'))
  slots.forget('gone')
  t.same([...slots.runningFunctions], ['gone'])
  slot.end()
  t.same([...slots.runningFunctions], [])
  slots.take(flowOf('gone', 'y')).end()
  t.equal(slots.running, 0)
})

t.test('answers that stream do not count once their calls wait, however many there are', async (t) => {
  const flow = { owner: 'o', functionName: 'streams', costMs: 100, wallMs: 1_000 }
  for (const waitsFirst of [true, false]) {
    let freed = 0
    const slots = slotsOf(64, () => freed++)
    const held = Array.from({ length: 50 }, () => {
      t.ok(slots.hasRoom(flow))
      const slot = slots.take(flow)
      if (waitsFirst) slot.release()
      slot.streams()
      slot.release()
      return slot
    })
    const before = freed
    t.same([slots.running, slots.runningOf('streams')], [0, 0])
    for (const slot of held) slot.end()
    t.equal(freed, before, 'there is no more room by their ends')
  }
})
