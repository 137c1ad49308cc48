import t from 'tap'
import { ServerMetrics } from '../../src/metrics/server-metrics.ts'
import { RECORD } from './support/record.ts'
import { render, valueOf } from './support/rendered.ts'

t.test('refused calls are counted by the code of the error, with or without a record', async (t) => {
  const metrics = new ServerMetrics()
  const refused = { ...RECORD, outcome: 'refused', host: 0 } as const
  metrics.recorded({ ...refused, error: 'saturated' })
  metrics.recorded({ ...refused, error: 'saturated' })
  metrics.recorded({ ...refused, error: 'too-many-requests' })
  metrics.recorded({ ...refused, error: 'body-too-large' })
  metrics.recorded(RECORD)
  metrics.shed('ledger-unavailable')
  const { carpool_shed_total: shed } = await render(metrics)
  const expected = {
    'too-many-requests': 1,
    'saturated': 2,
    'no-host': 0,
    'ledger-unavailable': 1,
    'draining': 0,
    'body-too-large': 1,
  }
  t.strictSame(metrics.shedCounts, expected)
  t.equal(shed?.samples.length, Object.keys(expected).length)
  for (const [reason, count] of Object.entries(expected)) t.equal(valueOf(shed, { reason }), count, reason)
})

t.test('only calls that got a place are in the time of the queue', async (t) => {
  const metrics = new ServerMetrics()
  metrics.recorded({ ...RECORD, queueUs: 1_000 })
  metrics.recorded({ ...RECORD, queueUs: 60_000_000, functionName: 'other', outcome: 'timeout' })
  metrics.recorded({ ...RECORD, queueUs: 10_000_000, host: 0, outcome: 'refused', error: 'saturated' })
  metrics.recorded({ ...RECORD, queueUs: 10_000_000, host: 0, outcome: 'canceled' })
  const { carpool_queue_seconds: queue } = await render(metrics)
  t.equal(valueOf(queue, { le: '0.001' }), 1)
  t.equal(valueOf(queue, { le: '30' }), 1)
  t.equal(valueOf(queue, { le: '+Inf' }), 2)
  t.equal(valueOf(queue, {}, 'carpool_queue_seconds_count'), 2)
  t.equal(valueOf(queue, {}, 'carpool_queue_seconds_sum'), 60.001)
})
