import fc from 'fast-check'
import t from 'tap'
import { hasRoom } from '../src/placement/has-room.ts'

/** Nothing is known of what calls cost. */
const UNKNOWN = { workMs: Number.POSITIVE_INFINITY, targetMs: 5 }

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
  const full = { running: 300, limit: 4, ofFunction: 300, functions: 2, targetMs: 5 }
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
