import t from 'tap'
import { ServerMetrics } from '../../src/metrics/server-metrics.ts'
import { EGRESS } from './support/egress.ts'
import { render, valueOf } from './support/rendered.ts'

t.test('what functions do outside is told as it is at each scrape', async (t) => {
  let reading = EGRESS
  const metrics = new ServerMetrics({ readEgress: () => reading })
  const before = await render(metrics)
  t.equal(valueOf(before['carpool_egress_fetches_total'], { result: 'ok' }), 100)
  t.equal(valueOf(before['carpool_egress_fetches_total'], { result: 'refused' }), 7)
  t.equal(valueOf(before['carpool_egress_fetches_total'], { result: 'failed' }), 3)
  t.equal(valueOf(before['carpool_egress_fetches_total'], { result: 'aborted' }), 1)
  t.equal(valueOf(before['carpool_egress_fetches_open'], {}), 12)
  t.equal(valueOf(before['carpool_egress_fetches_waiting'], {}), 2)
  t.equal(valueOf(before['carpool_egress_connections'], {}), 15)
  t.equal(valueOf(before['carpool_egress_buffered_bytes'], {}), 4096)
  reading = { ...EGRESS, connections: 0 }
  t.equal(valueOf((await render(metrics))['carpool_egress_connections'], {}), 0)
})
