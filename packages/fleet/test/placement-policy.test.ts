import fc from 'fast-check'
import t from 'tap'
import { chooseHost, flowLimit, hasRoom, type HostCandidate } from '../src/placement/placement-policy.ts'

const idle: HostCandidate = { hasRoom: true, isWarm: true, sharedDelayMs: 0, ofFunction: 0, running: 0 }

t.test('a host where the function is warm comes first, until a cold one runs it sooner', async (t) => {
  const cold = { ...idle, isWarm: false }
  t.equal(chooseHost([cold, idle], 10), idle)
  const behindOne = { ...idle, ofFunction: 1 }
  t.equal(chooseHost([cold, behindOne], 10), behindOne)
  const behindThree = { ...idle, ofFunction: 3 }
  t.equal(chooseHost([behindThree, cold], 10), cold)
  const crowded = { ...idle, sharedDelayMs: 30 }
  t.equal(chooseHost([crowded, cold], 10), cold)
})

t.test('between equals the one with less running, then the first', async (t) => {
  const [first, second] = [{ ...idle }, { ...idle }]
  t.equal(chooseHost([first, second], 10), first)
  const busier = { ...idle, running: 2 }
  t.equal(chooseHost([busier, second], 10), second)
})

t.test('a host without room is never chosen', async () => {
  const host = fc.record({
    hasRoom: fc.boolean(),
    isWarm: fc.boolean(),
    sharedDelayMs: fc.double({ min: 0, max: 1000, noNaN: true }),
    ofFunction: fc.nat(100),
    running: fc.nat(100),
  })
  fc.assert(
    fc.property(fc.array(host), fc.double({ min: 0, max: 1000, noNaN: true }), (hosts, costMs) => {
      const chosen = chooseHost(hosts, costMs)
      return chosen === undefined ? hosts.every(({ hasRoom }) => !hasRoom) : chosen.hasRoom
    }),
  )
})

/** Nothing is known of what calls cost. */
const UNKNOWN = { workMs: Number.POSITIVE_INFINITY, targetMs: 5, owners: 1 }

t.test('below the limit there is room for everyone', async (t) => {
  t.ok(hasRoom({ running: 9, limit: 10, ofFunction: 9, functions: 2, ...UNKNOWN }))
  t.notOk(hasRoom({ running: 10, limit: 10, ofFunction: 9, functions: 2, ...UNKNOWN }))
})

t.test('at the limit there is room for who runs less than its share', async (t) => {
  t.ok(hasRoom({ running: 10, limit: 10, ofFunction: 4, functions: 2, ...UNKNOWN }))
  t.notOk(hasRoom({ running: 10, limit: 10, ofFunction: 5, functions: 2, ...UNKNOWN }))
  t.ok(hasRoom({ running: 4, limit: 4, ofFunction: 0, functions: 150, ...UNKNOWN }), 'at least one, however many there are')
  t.notOk(hasRoom({ running: 4, limit: 4, ofFunction: 1, functions: 150, ...UNKNOWN }))
})

t.test('at the limit there is room for little work, of however many calls', async (t) => {
  const full = { running: 300, limit: 4, ofFunction: 300, owners: 1, functions: 2, targetMs: 5 }
  t.ok(hasRoom({ ...full, workMs: 5 }))
  t.notOk(hasRoom({ ...full, workMs: 5.1 }))
})

t.test('no function is shut out, and all together stay below twice the limit or one for each', async () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 100 }),
      fc.integer({ min: 1, max: 30 }),
      fc.array(fc.nat(29), { maxLength: 500, size: 'max' }),
      (limit, functions, calls) => {
        const runningOf = Array.from({ length: functions }, () => 0)
        let running = 0
        for (const call of calls) {
          const name = call % functions
          const ofFunction = runningOf[name]!
          if (!hasRoom({ running, limit, ofFunction, functions, ...UNKNOWN })) {
            if (ofFunction === 0) return false
            continue
          }
          runningOf[name] = ofFunction + 1
          running++
        }
        return running <= Math.max(2 * limit, limit + functions)
      },
    ),
  )
})

t.test('slow calls wait one behind the other, quick ones for twice the target', async (t) => {
  t.equal(flowLimit(200, 5), 2)
  t.equal(flowLimit(1, 5), 11)
  t.equal(flowLimit(0.02, 5), 501)
  t.ok(Number.isFinite(flowLimit(0, 5)))
})

t.test('a function that has not run yet may run a few times', async (t) => {
  t.equal(flowLimit(undefined, 5), 4)
})

t.test('a full flow always shows as delay above the target', async () => {
  const ms = fc.double({ min: 0.001, max: 1000, noNaN: true })
  fc.assert(fc.property(ms, ms, (costMs, targetMs) => (flowLimit(costMs, targetMs) - 1) * costMs > targetMs))
})
