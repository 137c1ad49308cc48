import { INSTANCE_CONCURRENCY } from '@carpool/core'
import fc from 'fast-check'
import t from 'tap'
import { InstanceTime } from '../src/meter.ts'

/** An instance time under a clock that the test sets, in µs. */
function instanceTimeAt0(): { time: InstanceTime; passUs: (us: number) => void } {
  let nowUs = 0
  return { time: new InstanceTime(() => nowUs / 1000), passUs: (us) => (nowUs += us) }
}

t.test('one invocation or as many as fit use one instance, one more uses two', async (t) => {
  for (const [invocations, instances] of [
    [1, 1],
    [INSTANCE_CONCURRENCY, 1],
    [INSTANCE_CONCURRENCY + 1, 2],
    [3 * INSTANCE_CONCURRENCY, 3],
  ] as const) {
    const { time, passUs } = instanceTimeAt0()
    for (let count = 0; count < invocations; count++) time.placed('f')
    passUs(5_000)
    const told = Array.from({ length: invocations }, () => time.ended('f'))
    t.equal(told[0], 5_000 * instances)
    t.equal(
      told.reduce((sum, us) => sum + us, 0),
      5_000 * instances,
    )
  }
})

t.test('time without an invocation counts nothing', async (t) => {
  const { time, passUs } = instanceTimeAt0()
  time.placed('f')
  passUs(1_000)
  t.equal(time.ended('f'), 1_000)
  passUs(60_000_000)
  time.placed('f')
  passUs(2_000)
  t.equal(time.ended('f'), 2_000)
})

t.test('an end without a beginning counts nothing', async (t) => {
  const { time, passUs } = instanceTimeAt0()
  passUs(1_000)
  t.equal(time.ended('f'), 0)
})

t.test('what is told adds up to the integral, for each function by itself', async () => {
  // Whole µs, and fractions that a real clock has.
  const gapUs = fc.oneof(fc.nat(1_000_000), fc.double({ min: 0, max: 1_000, noNaN: true }))
  const step = fc.tuple(fc.constantFrom('f', 'g'), fc.constantFrom('begin', 'end'), fc.integer({ min: 1, max: 200 }), gapUs)
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      const { time, passUs } = instanceTimeAt0()
      const functions = {
        f: { inFlight: 0, toldUs: 0, integralUs: 0, busyPeriods: 0 },
        g: { inFlight: 0, toldUs: 0, integralUs: 0, busyPeriods: 0 },
      }
      const end = (name: 'f' | 'g'): boolean => {
        const one = functions[name]
        const us = time.ended(name)
        one.inFlight--
        one.toldUs += us
        if (one.inFlight === 0) one.busyPeriods++
        // What is less than 1 µs is told later, or lost with the last invocation.
        const untoldUs = one.integralUs - one.toldUs
        return Number.isInteger(us) && us >= 0 && untoldUs > -0.01 && untoldUs < one.busyPeriods + 1.01
      }
      for (const [name, what, count, gapUs] of steps) {
        passUs(gapUs)
        for (const one of Object.values(functions)) one.integralUs += Math.ceil(one.inFlight / 80) * gapUs
        for (let each = 0; each < count; each++) {
          if (what === 'begin') {
            time.placed(name)
            functions[name].inFlight++
          } else if (functions[name].inFlight > 0 && !end(name)) return false
        }
      }
      return true
    }),
  )
})

t.test('whatever the clock does, nothing is negative', async () => {
  // The last two end at the same time, with a rest that is 0 but for the rounding.
  const examples: [number[]][] = [[[568_397, 889_113, 0]]]
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: -1_000_000, max: 1_000_000 }), { minLength: 1, maxLength: 30, size: 'max' }),
      (jumpsUs) => {
        const { time, passUs } = instanceTimeAt0()
        for (const _ of jumpsUs) time.placed('f')
        return jumpsUs.every((jumpUs) => {
          passUs(jumpUs)
          return time.ended('f') >= 0
        })
      },
    ),
    { examples },
  )
})

t.test('what never began counts as if it had not been there, but for what others have taken before', async () => {
  const step = fc.tuple(fc.constantFrom('begin', 'lost', 'end'), fc.integer({ min: 1, max: 100 }), fc.nat(1_000_000))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40, size: 'max' }), (steps) => {
      const { time, passUs } = instanceTimeAt0()
      const reference = instanceTimeAt0()
      // Of those that never began, the other one knows nothing.
      let [inFlight, lostUs] = [0, 0]
      const lost: number[] = []
      const takeBack = (): void => {
        for (const atMs of lost.splice(0)) time.unplaced('f', atMs)
      }
      for (const [what, count, gapUs] of steps) {
        for (let each = 0; each < count; each++) {
          if (what === 'lost') lost.push(time.placed('f'))
          else if (what === 'begin') {
            time.placed('f')
            reference.time.placed('f')
            inFlight++
          } else if (inFlight > 0) {
            takeBack()
            lostUs += reference.time.ended('f') - time.ended('f')
            inFlight--
          }
        }
        passUs(gapUs)
        reference.passUs(gapUs)
      }
      // Rests of less than 1 µs may be left out in the one and not in the other.
      return Math.abs(lostUs) <= 2 * steps.length
    }),
  )
})
