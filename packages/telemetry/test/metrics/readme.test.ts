/** Every metric is explained, with its type and its labels, and nothing else. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { ServerMetrics } from '../../src/metrics/server-metrics.ts'
import { EGRESS } from './support/egress.ts'
import { FLEET } from './support/host.ts'
import { RECORD } from './support/record.ts'
import { render } from './support/rendered.ts'

t.test('the tables of the docs and what is told are the same', async (t) => {
  const text = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const explained = [...text.matchAll(/^\| `(\w+)` \| (\w+) \|(.*?)\|/gm)].map(([, name = '', type, labels = '']) => [
    name,
    { type, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label).toSorted() },
  ])
  const metrics = new ServerMetrics({ readFleet: () => FLEET, readEgress: () => EGRESS })
  metrics.recorded({ ...RECORD, start: 'host-cold' })
  metrics.scaled('grow', 'saturated')
  metrics.containment.hostPoisoned('stuck')
  metrics.containment.struck('free')
  const told = Object.entries(await render(metrics)).map(([name, { type, samples }]) => {
    const labels = new Set(samples.flatMap((sample) => Object.keys(sample.labels)))
    labels.delete('le')
    return [name, { type, labels: [...labels].toSorted() }]
  })
  t.strictSame(Object.fromEntries(explained), Object.fromEntries(told))
})
