import fc from 'fast-check'
import t from 'tap'
import { ConnectionSlots, type Claim, type ConnectionSlot } from '../src/connection-slots.ts'

const LIMITS = { maxConnections: 30, maxConnectionsPerOrigin: 30, maxWaitingPerFunction: 100 }
const claim = (functionName: string, origin = 'http://a'): Claim => ({ functionName, owner: functionName, origin })
const never = new AbortController().signal

/** Takes slots without waiting for them; what comes later is put into `granted`. */
function takeMany(slots: ConnectionSlots, wanted: Claim, count: number, granted: ConnectionSlot[]): void {
  for (let index = 0; index < count; index += 1) void slots.take(wanted, never).then((slot) => granted.push(slot))
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

t.test('a flood of one function waits for itself, and not another for it', async (t) => {
  const slots = new ConnectionSlots(LIMITS)
  const flood: ConnectionSlot[] = []
  takeMany(slots, claim('flood'), 100, flood)
  await settled()
  t.equal(flood.length, 10, 'a third')
  t.equal(slots.waiting, 90)
  const neighbour: ConnectionSlot[] = []
  takeMany(slots, claim('neighbour'), 3, neighbour)
  await settled()
  t.equal(neighbour.length, 3)
  flood[0]?.release()
  flood[0]?.release()
  await settled()
  t.equal(flood.length, 10, 'the neighbour has lowered its share')
  for (const slot of neighbour) slot.release()
  await settled()
  t.equal(flood.length, 11, 'what was released twice was given once')
})

t.test('functions that wait have turns', async (t) => {
  const slots = new ConnectionSlots({ ...LIMITS, maxConnections: 1 })
  const order: string[] = []
  const first = await slots.take(claim('holder'), never)
  for (const name of ['a', 'a', 'a', 'b', 'c'])
    void slots.take(claim(name), never).then((slot) => {
      order.push(name)
      setImmediate(() => slot.release())
    })
  await settled()
  t.same(order, [])
  first.release()
  while (order.length < 5) await settled()
  t.same(order, ['a', 'b', 'c', 'a', 'a'])
  await settled()
  t.equal(slots.open, 0)
})

t.test('an origin at its limit holds up nothing but fetches of it', async (t) => {
  const slots = new ConnectionSlots({ ...LIMITS, maxConnectionsPerOrigin: 3 })
  const slow: ConnectionSlot[] = []
  const fast: ConnectionSlot[] = []
  const others: ConnectionSlot[] = []
  takeMany(slots, claim('flood', 'http://slow'), 20, slow)
  takeMany(slots, claim('flood', 'http://fast'), 1, fast)
  takeMany(slots, claim('neighbour', 'http://slow'), 1, others)
  await settled()
  t.same([slow.length, fast.length, others.length], [1, 1, 1])
})

t.test('too many that wait are refused, and who leaves is forgotten', async (t) => {
  const slots = new ConnectionSlots({ ...LIMITS, maxConnections: 1, maxWaitingPerFunction: 2 })
  const held = await slots.take(claim('a'), never)
  const leaving = new AbortController()
  const left = slots.take(claim('a'), leaving.signal)
  const waits = slots.take(claim('a'), never)
  await t.rejects(slots.take(claim('a'), never), { code: 'waiting-full' })
  leaving.abort(new Error('left'))
  await t.rejects(left, { message: 'left' })
  await t.rejects(slots.take(claim('a'), leaving.signal), { message: 'left' })
  t.equal(slots.waiting, 1)
  held.release()
  ;(await waits).release()
  t.same([slots.open, slots.waiting], [0, 0])
})

t.test('whatever comes and goes, all that wait are served in the end and no slot is lost', async () => {
  const step = fc.record({
    name: fc.constantFrom('a', 'b', 'c'),
    origin: fc.constantFrom('http://x', 'http://y'),
    act: fc.constantFrom('take', 'take', 'release', 'abort'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
      const slots = new ConnectionSlots({ maxConnections: 6, maxConnectionsPerOrigin: 4, maxWaitingPerFunction: 1_000 })
      const held: ConnectionSlot[] = []
      const aborts: AbortController[] = []
      let waited = 0
      for (const { name, origin, act } of steps) {
        if (act === 'release') held.shift()?.release()
        else if (act === 'abort') aborts.shift()?.abort(new Error('left'))
        else {
          const abort = new AbortController()
          aborts.push(abort)
          waited += 1
          void slots
            .take(claim(name, origin), abort.signal)
            .then((slot) => held.push(slot))
            .catch(() => {})
            .finally(() => (waited -= 1))
        }
        await Promise.resolve()
        if (slots.open > 6) return false
      }
      await settled()
      while (held.length > 0) {
        held.shift()?.release()
        await settled()
      }
      return waited === 0 && slots.open === 0 && slots.waiting === 0
    }),
    { numRuns: 200 },
  )
})

t.test('owners have turns before their functions, and hold equally much in the end', async (t) => {
  const slots = new ConnectionSlots({ ...LIMITS, maxConnections: 90, maxConnectionsPerOrigin: 90, maxWaitingPerFunction: 1_000 })
  const held: { readonly owner: string; readonly slot: ConnectionSlot }[] = []
  const take = (owner: string, functionName: string): void => {
    void slots.take({ owner, functionName, origin: 'http://a' }, never).then((slot) => held.push({ owner, slot }))
  }
  for (let index = 0; index < 20; index++) for (let count = 0; count < 30; count++) take('many', `many-${index}`)
  for (let count = 0; count < 300; count++) take('one', 'one')
  await settled()
  for (let given = 0; given < 300; given++) {
    held.splice((given * 7) % held.length, 1)[0]?.slot.release()
    await settled()
  }
  const ofOne = held.filter(({ owner }) => owner === 'one').length
  t.ok(ofOne >= 0.8 * (held.length - ofOne), `${ofOne} of ${held.length}`)
})
