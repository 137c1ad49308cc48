/** What is rendered: its format, by our own check and by Prometheus' tool, and that README.md has all of it. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { OUTCOMES, START_KINDS, type Outcome } from '@carpool/core'
import t from 'tap'
import type { HostReading } from '../../src/metrics/fleet-metrics.ts'
import { ServerMetrics } from '../../src/metrics/server-metrics.ts'
import { EGRESS, FLEET, HOST, metricsOf, RECORD, render } from './support/readings.ts'
import { parseTextFormat } from './support/text-format.ts'

t.test('the check of the text format refuses what is wrong', async (t) => {
  const head = '# HELP a_total Help.\n# TYPE a_total counter\n'
  t.match(
    [...parseTextFormat(`${head}a_total{x="1",y="\\"\\\\\\n"} 1e3\na_total 2\n`)],
    [
      [
        'a_total',
        {
          help: 'Help.',
          type: 'counter',
          samples: [
            { labels: { x: '1', y: '"\\\n' }, value: 1000 },
            { labels: {}, value: 2 },
          ],
        },
      ],
    ],
  )
  for (const wrong of [
    'a_total 1\n',
    '# TYPE a_total counter\na_total 1\n',
    '# HELP a_total Help.\na_total 1\n',
    `${head}${head}`,
    `${head}a_total 1`,
    `${head}a_total 1\na_total 1\n`,
    `${head}b_total 1\n`,
    `${head}a_total one\n`,
    `${head}a_total{x=1} 1\n`,
    `${head}a_total{x="1",x="2"} 1\n`,
    `${head}a_total{x="\\q"} 1\n`,
    `${head}a_total{x="""} 1\n`,
    '# HELP a Help.\n# TYPE a counter\na 1\n',
    '# HELP a Help.\n# TYPE a meter\na 1\n',
    '# HELP 1a Help.\n# TYPE 1a gauge\n1a 1\n',
  ]) {
    t.throws(() => parseTextFormat(wrong), wrong)
  }
})

const PROMTOOL = 'promtool'

interface Checked {
  readonly status: number | null
  /** Empty if there is nothing to complain about. */
  readonly output: string
}

/** What Prometheus' own tool says of metrics. Debian: package `prometheus`; `.ci/promtool` takes it out without the service. */
function check(text: string): Checked {
  const { status, stdout, stderr, error } = spawnSync(PROMTOOL, ['check', 'metrics'], { input: text, encoding: 'utf8' })
  return { status, output: error === undefined ? `${stdout}${stderr}` : String(error) }
}

/** As after some time with real traffic: every outcome, start and trigger, hosts in all states, and names that need escapes. */
function busyMetrics(): ServerMetrics {
  const states = ['ready', 'saturated', 'draining', 'poisoned', 'standby', 'starting', 'gone'] as const
  const hosts = states.map((state, index): HostReading => ({ ...HOST, id: index + 1, state }))
  const unknown: HostReading = { ...HOST, id: 8, state: 'starting', cpuCores: Number.NaN, saturation: Number.NaN }
  const metrics = metricsOf({ ...FLEET, hosts: [...hosts, unknown] }, EGRESS)
  for (const [index, outcome] of (Object.keys(OUTCOMES) as Outcome[]).entries()) {
    for (const functionName of ['sample', 'quote"', 'back\\slash', 'new\nline', 'grüße']) {
      metrics.recorded({
        ...RECORD,
        functionName,
        outcome,
        trigger: index % 2 === 0 ? 'http' : 'cli',
        start: START_KINDS[index % START_KINDS.length]!,
        host: 1 + (index % 3),
        queueUs: 10 ** index,
        initUs: 5_000 * index,
        wallUs: 10 ** index + 20_000 * index,
        cpuUs: 333 * index,
        memoryPeakKb: 2 ** index,
        bytesIn: index,
        egressBytesOut: 7 * index,
      })
    }
  }
  metrics.recorded({ ...RECORD, outcome: 'refused', error: 'saturated', host: 0 })
  metrics.usedInBackground(12_345)
  metrics.hostCpu(1, { processUs: 9_000_000, loopUs: 3_000_000, isolatesUs: 4_000_000, blanksUs: 125_000, memoryWatchUs: 62_500 })
  metrics.hostStarted('ready')
  metrics.scaled('grow', 'saturated')
  metrics.streams.changed('quote"', 'answer', 1)
  metrics.streams.changed('new\nline', 'socket', 1)
  return metrics
}

const isThere = spawnSync(PROMTOOL, ['--version']).error === undefined
// Who works on this without it may; the tests of a commit may not.
const skip = !isThere && process.env['CI'] !== 'true' && 'promtool is not there; .ci/promtool gets it'

t.test('promtool has nothing to say of metrics after traffic', { skip }, async (t) => {
  t.strictSame(check(await busyMetrics().render()), { status: 0, output: '' })
})

t.test('nor of metrics before anything happened', { skip }, async (t) => {
  t.strictSame(check(await new ServerMetrics().render()), { status: 0, output: '' })
  const idle = metricsOf({ ...FLEET, hosts: [] })
  t.strictSame(check(await idle.render()), { status: 0, output: '' })
})

t.test('it does see what is wrong', { skip }, async (t) => {
  const text = await busyMetrics().render()
  const wrong = [
    text.replace('# TYPE carpool_host_run_delay_seconds summary', '# TYPE carpool_host_run_delay_seconds gauge'),
    text.replaceAll('faas_errors_total', 'faas_errors'),
    text.replace(/^# HELP carpool_hosts .*\n/m, ''),
    text.replace(/^carpool_invocations_queued .*$/m, 'carpool_invocations_queued many'),
  ]
  for (const each of wrong) {
    t.not(each, text)
    t.not(check(each).status, 0)
  }
})

t.test('README.md explains every metric, with its type and its labels, and nothing else', async (t) => {
  const text = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const explained = [...text.matchAll(/^\| `(\w+)` \| (\w+) \|(.*?)\|/gm)].map(([, name = '', type, labels = '']) => [
    name,
    { type, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label).toSorted() },
  ])
  const metrics = metricsOf(FLEET, EGRESS)
  metrics.recorded({ ...RECORD, start: 'host-cold' })
  metrics.scaled('grow', 'saturated')
  metrics.containment.hostPoisoned('stuck')
  metrics.containment.struck('free')
  for (const kind of ['answer', 'websocket', 'socket'] as const) metrics.streams.changed('sample', kind, 1)
  const told = Object.entries(await render(metrics)).map(([name, { type, samples }]) => {
    const labels = new Set(samples.flatMap((sample) => Object.keys(sample.labels)))
    labels.delete('le')
    return [name, { type, labels: [...labels].toSorted() }]
  })
  t.strictSame(Object.fromEntries(explained), Object.fromEntries(told))
})
