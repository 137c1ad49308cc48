import fc from 'fast-check'
import t from 'tap'
import { packUsage, unpackUsage } from '../src/index.ts'

const figure = fc.oneof(fc.constant(0), fc.maxSafeNat())

t.test('usage comes back as it was sent, through JSON', async (t) => {
  const usage = fc.record({
    cpuUs: figure,
    initUs: figure,
    initCpuUs: figure,
    memoryPeakKb: figure,
    egressBytesOut: figure,
    egressBytesIn: figure,
    sockets: figure,
    socketUs: figure,
    attempts: fc.nat(3),
  })
  fc.assert(
    fc.property(usage, (sent) => {
      const received = unpackUsage(JSON.parse(JSON.stringify(packUsage(sent))))
      return Object.entries(sent).every(([name, value]) => received[name as keyof typeof received] === value)
    }),
  )
  t.equal(packUsage({ ...unpackUsage(undefined), cpuUs: 5, attempts: 1 }).length, 2, 'the usual case is short')
})

t.test('whatever a host sends is a usage of whole numbers that are not negative', async (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), (sent) =>
      Object.values(unpackUsage(sent)).every((value) => Number.isSafeInteger(value) && value >= 0),
    ),
  )
  t.match(unpackUsage([-5, Number.NaN, '7', 1.5, Number.POSITIVE_INFINITY, null, 2]), {
    cpuUs: 0,
    memoryPeakKb: 0,
    initUs: 0,
    attempts: 2,
  })
})
