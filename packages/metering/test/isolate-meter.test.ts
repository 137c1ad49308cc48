import fc from 'fast-check'
import t from 'tap'
import { IsolateMeter } from '../src/index.ts'

const figures = fc.nat(2 ** 31 - 1)
const step = fc.oneof(
  fc.record({ kind: fc.constant('ran' as const), ns: figures }),
  fc.record({ kind: fc.constant('advance' as const), ns: figures }),
  // A clock that was wrong once: far behind or far ahead.
  fc.record({ kind: fc.constant('jump' as const), ns: figures }),
)

t.test('what was given out is what the clock says, or what was given out ahead of it', async () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100, size: 'max' }), (steps) => {
      const meter = new IsolateMeter()
      let clockNs = 0
      let highestNs = 0
      let givenNs = 0
      for (const { kind, ns } of steps) {
        if (kind === 'advance') {
          meter.advance(ns)
          givenNs += ns
          continue
        }
        clockNs = kind === 'ran' ? clockNs + ns : ns
        highestNs = Math.max(highestNs, clockNs)
        const usedNs = meter.settle({ ns: clockNs, isExact: true })
        if (usedNs < 0) return false
        const expectedNs = Math.max(givenNs, highestNs)
        givenNs += usedNs
        if (givenNs !== expectedNs) return false
      }
      return true
    }),
  )
})

t.test('an estimate that was too high is taken off what comes after', async (t) => {
  const meter = new IsolateMeter()
  t.equal(meter.settle({ ns: 100, isExact: true }), 100)
  meter.advance(50)
  t.equal(meter.settle({ ns: 120, isExact: true }), 0)
  t.equal(meter.settle({ ns: 140, isExact: true }), 0)
  t.equal(meter.settle({ ns: 160, isExact: true }), 10)
})

t.test('a reading that goes back counts nothing, and neither does getting back to where it was', async (t) => {
  const meter = new IsolateMeter()
  meter.settle({ ns: 100, isExact: true })
  t.equal(meter.settle({ ns: 40, isExact: true }), 0)
  t.equal(meter.settle({ ns: 100, isExact: true }), 0)
  t.equal(meter.settle({ ns: 130, isExact: true }), 30)
})
