import { CarpoolError, NO_USAGE, OUTCOMES, START_KINDS, type FailedOutcome } from '@carpool/core'
import fc from 'fast-check'
import t from 'tap'
import { answered, failed, meterRig, REVISION, type Metering } from './support/meter.ts'

const UNAVAILABLE = new CarpoolError('ledger-unavailable', 'The disk is full.')

t.test('a record says who was called, when, what came of it and what it used', async (t) => {
  const { begin, clocks, writes } = meterRig()
  const metering = begin('one')
  clocks.monotonicMs += 2.5
  metering.placed(7)
  clocks.monotonicMs += 10
  clocks.epochMs += 5_000
  const usage = {
    ...NO_USAGE,
    cpuUs: 11,
    initUs: 12,
    initCpuUs: 13,
    memoryPeakKb: 14,
    egressBytesOut: 15,
    egressBytesIn: 16,
    sockets: 17,
    socketUs: 18,
    attempts: 1,
  }
  const record = await metering.finish(answered('isolate-cold', usage))
  t.strictSame(record, {
    id: 'one',
    functionName: 'sample',
    revision: REVISION.id,
    owner: 'someone',
    trigger: 'http',
    startedAtMs: 1_800_000_000_000,
    host: 7,
    queueUs: 2_500,
    wallUs: 12_500,
    memoryMb: 128,
    bytesIn: 4,
    ...usage,
    start: 'isolate-cold',
    outcome: 'ok',
    status: 201,
    bytesOut: 6,
    openUs: 0,
  })
  t.strictSame(writes, [{ record, instanceUs: 10_000 }])
})

t.test('each outcome of user code has its status, and no bytes out', async (t) => {
  for (const outcome of Object.keys(OUTCOMES).filter((outcome): outcome is FailedOutcome => outcome !== 'ok')) {
    const { begin } = meterRig()
    const metering = begin('one')
    metering.placed(1)
    t.match(await metering.finish(failed(outcome)), { outcome, status: OUTCOMES[outcome].status, bytesOut: 0 })
  }
})

t.test('an answer that streams is open from its head to its end, however that comes', async (t) => {
  for (const result of [answered(), failed('timeout'), failed('host-lost')]) {
    const { begin, clocks } = meterRig()
    const metering = begin('one')
    metering.placed(7)
    clocks.monotonicMs += 3
    metering.began(206, 99)
    clocks.monotonicMs += 4_000
    t.match(await metering.finish(result), {
      outcome: result.outcome,
      status: 206,
      bytesOut: 99,
      openUs: 4_000_000,
      wallUs: 4_003_000,
    })
  }
})

t.test('a call that is refused has a record with the error, and its time was all waiting', async (t) => {
  for (const isPlaced of [false, true]) {
    const { begin, clocks, writes } = meterRig()
    const metering = begin('one')
    clocks.monotonicMs += 3
    if (isPlaced) metering.placed(7)
    clocks.monotonicMs += 4
    const error = await metering.refuse(new CarpoolError('saturated', 'Full.'))
    t.match(error, { code: 'saturated', message: 'Full.' })
    t.match(writes, [
      {
        record: {
          ...NO_USAGE,
          outcome: 'refused',
          error: 'saturated',
          status: 503,
          start: 'warm',
          queueUs: 7_000,
          wallUs: 7_000,
          bytesOut: 0,
        },
        instanceUs: isPlaced ? 4_000 : 0,
      },
    ])
  }
})

t.test('what a host took and gave back unbegun was waiting, and uses no instance', async (t) => {
  const { begin, clocks, writes } = meterRig()
  const taken = [begin('one'), begin('two'), begin('refused')]
  clocks.monotonicMs += 1
  for (const metering of taken) metering.placed(7)
  clocks.monotonicMs += 5_000
  const [one, two, refused] = taken as [Metering, Metering, Metering]
  for (const metering of taken) metering.unplaced()
  clocks.monotonicMs += 2
  for (const metering of [one, two]) metering.placed(8)
  clocks.monotonicMs += 10
  for (const metering of [one, two]) await metering.finish(answered())
  t.match(await refused.refuse(new CarpoolError('saturated', 'Full.')), { code: 'saturated' })
  t.match(writes, [
    { record: { id: 'one', queueUs: 5_003_000, wallUs: 5_013_000 }, instanceUs: 10_000 },
    { record: { id: 'two', queueUs: 5_003_000, wallUs: 5_013_000 }, instanceUs: 0 },
    { record: { id: 'refused', outcome: 'refused', queueUs: 5_013_000, wallUs: 5_013_000 }, instanceUs: 0 },
  ])
})

t.test('each call that is given back unbegun may be placed before the next one is given back', async (t) => {
  const { begin, clocks, writes } = meterRig()
  const taken = [begin('one'), begin('two'), begin('three')]
  for (const metering of taken) metering.placed(7)
  clocks.monotonicMs += 5_000
  for (const metering of taken) {
    metering.unplaced()
    metering.placed(8)
  }
  clocks.monotonicMs += 10
  for (const metering of taken) await metering.finish(answered())
  t.same(
    writes.map(({ instanceUs }) => instanceUs),
    [10_000, 0, 0],
  )
})

t.test('what is not an error of ours is refused as internal', async (t) => {
  const { begin, writes } = meterRig()
  t.match(await begin('one').refuse(new TypeError('a secret')), { code: 'internal', status: 500 })
  t.match(writes, [{ record: { outcome: 'refused', error: 'internal', status: 500 } }])
  t.notMatch(JSON.stringify(writes), 'secret')
})

t.test('a call that is refused because it cannot be recorded has a record that is written later', async (t) => {
  const { meter, begin, clocks, writes, held } = meterRig()
  const metering = begin('one')
  clocks.monotonicMs += 3
  t.equal(await metering.refuse(UNAVAILABLE), UNAVAILABLE)
  t.equal(await metering.refuse(UNAVAILABLE), UNAVAILABLE)
  t.strictSame(writes, [], 'nobody waits for it')
  t.match(held, [{ ...NO_USAGE, id: 'one', outcome: 'refused', error: 'ledger-unavailable', status: 503, queueUs: 3_000 }])
  t.equal(held.length, 1)
  t.equal(meter.underWay, 0)
})

t.test('a write that fails is told and not repeated', async (t) => {
  const { begin, writes, held, failWrites } = meterRig()
  failWrites(UNAVAILABLE)
  const answeredCall = begin('one')
  answeredCall.placed(1)
  await t.rejects(answeredCall.finish(answered()), UNAVAILABLE)
  t.equal(await answeredCall.refuse(UNAVAILABLE), UNAVAILABLE)
  t.match(await answeredCall.refuse(new Error('later')), { code: 'internal' })
  t.equal(writes.length, 1)
  t.strictSame(held, [], 'it has its record, which waits to be written')

  const refusedCall = begin('two')
  t.equal(await refusedCall.refuse(new CarpoolError('saturated', 'Full.')), UNAVAILABLE)
  t.match(await refusedCall.refuse(new CarpoolError('saturated', 'Full.')), { code: 'saturated' })
  t.equal(writes.length, 2)
})

t.test('a write that fails with something else is an internal fault', async (t) => {
  const { begin, failWrites } = meterRig()
  failWrites(new Error('the thread is gone'))
  t.match(await begin('one').refuse(new CarpoolError('saturated', 'Full.')), { code: 'internal' })
})

t.test('only the first in a host of a revision that never ran is function-cold', async (t) => {
  for (const start of START_KINDS) {
    for (const hasRun of [false, true]) {
      const asked: string[] = []
      const { begin } = meterRig((revision) => {
        asked.push(revision)
        return hasRun
      })
      const metering = begin('one')
      metering.placed(1)
      const record = await metering.finish(answered(start))
      t.equal(record.start, start === 'host-cold' && !hasRun ? 'function-cold' : start)
      t.ok(asked.every((revision) => revision === REVISION.id))
    }
  }
})

t.test('every outcome counts as an invocation, all but ok as a failure, and what was refused not at all', async (t) => {
  const { meter, begin } = meterRig()
  for (const result of [answered(), failed('exception'), answered(), failed('timeout')]) {
    const metering = begin('one')
    metering.placed(1)
    await metering.finish(result)
  }
  await begin('one').refuse(new CarpoolError('saturated', 'Full.'))
  const { functionName, owner } = REVISION
  t.strictSame(meter.countsOf({ functionName, owner }), { invocations: 4, failures: 2 })
  t.strictSame(meter.countsOf({ functionName: 'other', owner }), { invocations: 0, failures: 0 })
  t.strictSame(meter.countsOf({ functionName, owner: 'another' }), { invocations: 0, failures: 0 })
})

t.test('whatever ends a call, and however often it ends, it has one record', async () => {
  const ends = fc.array(fc.constantFrom('finish', 'refuse'), { minLength: 1, maxLength: 4 })
  // The server never finishes what it has refused.
  const isInOrder = (ends: string[]): boolean => ends.lastIndexOf('finish') <= 0
  const calls = fc.array(fc.record({ isPlaced: fc.boolean(), ends: ends.filter(isInOrder), isFull: fc.boolean() }), {
    maxLength: 20,
    size: 'max',
  })
  await fc.assert(
    fc.asyncProperty(calls, async (calls) => {
      const { begin, writes, failWrites } = meterRig()
      const meterings = calls.map((_, index) => begin(String(index)))
      for (const [index, { isPlaced, ends, isFull }] of calls.entries()) {
        const metering = meterings[index]!
        if (isFull) failWrites(UNAVAILABLE)
        if (isPlaced || ends[0] === 'finish') metering.placed(1)
        for (const end of ends) {
          if (end === 'finish') await metering.finish(answered()).catch(() => {})
          else await metering.refuse(new CarpoolError('draining', 'The server stops.'))
        }
      }
      const ids = writes.map(({ record }) => record.id)
      return ids.length === calls.length && new Set(ids).size === calls.length
    }),
  )
})

t.test('a call that was refused cannot be finished, nor finished twice', async (t) => {
  for (const first of ['finish', 'refuse'] as const) {
    const { begin, writes } = meterRig()
    const metering = begin('one')
    metering.placed(1)
    if (first === 'finish') await metering.finish(answered())
    else await metering.refuse(new CarpoolError('draining', 'The server stops.'))
    await metering.finish(answered()).catch(() => {})
    t.equal(writes.length, 1, `after ${first}`)
  }
})

t.test('whatever the clocks do, no figure is negative or broken', async () => {
  const jump = fc.double({ min: -1e9, max: 1e9, noNaN: true })
  await fc.assert(
    fc.asyncProperty(
      fc.array(jump, { minLength: 4, maxLength: 4 }),
      fc.boolean(),
      fc.boolean(),
      async (jumpsMs, isPlaced, isRefused) => {
        const { begin, clocks, writes } = meterRig()
        const pass = (index: number): void => {
          clocks.monotonicMs += jumpsMs[index] ?? 0
          clocks.epochMs += Math.round(jumpsMs[index] ?? 0)
        }
        const metering = begin('one')
        pass(0)
        if (isPlaced || !isRefused) metering.placed(1)
        pass(1)
        const other = begin('two')
        other.placed(1)
        pass(2)
        if (isRefused) await metering.refuse(new CarpoolError('no-host', 'None.'))
        else await metering.finish(answered())
        pass(3)
        await other.finish(failed('timeout'))
        return writes.every(({ record, instanceUs }) =>
          [instanceUs, ...Object.values(record)].every(
            (value) => typeof value !== 'number' || (Number.isSafeInteger(value) && value >= 0),
          ),
        )
      },
    ),
  )
})
