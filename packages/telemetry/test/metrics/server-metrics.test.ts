import { OUTCOMES, START_KINDS, type InvocationRecord, type Outcome } from '@carpool/core'
import fc from 'fast-check'
import t from 'tap'
import { CPU_PARTS } from '../../src/metrics/cpu-account.ts'
import { ServerMetrics } from '../../src/metrics/server-metrics.ts'
import { RECORD } from './support/record.ts'
import { render, sumOf, valueOf } from './support/rendered.ts'
import type { Family, Sample } from './support/text-format.ts'

const NAMES = [
  'carpool_function_strikes_total',
  'carpool_host_cpu_seconds',
  'carpool_host_starts_total',
  'carpool_hosts_poisoned_total',
  'carpool_queue_seconds',
  'carpool_scaling_decisions_total',
  'carpool_shed_total',
  'carpool_unattributed_cpu_seconds',
  'faas_coldstarts_total',
  'faas_cpu_usage_seconds_total',
  'faas_errors_total',
  'faas_init_duration_seconds',
  'faas_invocations_total',
  'faas_invoke_duration_seconds',
  'faas_mem_usage_bytes',
  'faas_net_io_bytes_total',
  'faas_timeouts_total',
]
const HISTOGRAMS = ['carpool_queue_seconds', 'faas_init_duration_seconds', 'faas_invoke_duration_seconds', 'faas_mem_usage_bytes']
const SAMPLE = { function: 'sample', trigger: 'http' }
const OTHER = { function: 'other', trigger: 'http' }

t.test('before anything happened all metrics are there, with their types, and what is known to come is 0', async (t) => {
  const families = await render(new ServerMetrics())
  const own = Object.keys(families).filter((name) => !/^(?:process|nodejs)_/.test(name))
  t.strictSame(own.toSorted(), NAMES)
  for (const name of own) {
    const type = name.endsWith('_total') ? 'counter' : HISTOGRAMS.includes(name) ? 'histogram' : 'gauge'
    t.equal(families[name]?.type, type, name)
  }
  t.strictSame(
    families['carpool_host_cpu_seconds']?.samples.map(({ labels, value }) => [labels['part'], value]),
    CPU_PARTS.map((part) => [part, 0]),
  )
  t.strictSame(
    families['carpool_shed_total']?.samples.map(({ labels, value }) => [labels['reason'], value]),
    ['too-many-requests', 'saturated', 'no-host', 'ledger-unavailable', 'draining'].map((reason) => [reason, 0]),
  )
  t.strictSame(
    families['carpool_host_starts_total']?.samples.map(({ labels, value }) => [labels['result'], value]),
    [
      ['ready', 0],
      ['failed', 0],
    ],
  )
  t.match(new ServerMetrics().contentType, /^text\/plain; version=0\.0\.4/)
})

t.test('invocations are counted by function and outcome, cold starts by kind, and CPU time by function', async (t) => {
  const metrics = new ServerMetrics()
  metrics.recorded({ ...RECORD, cpuUs: 1_500 })
  metrics.recorded({ ...RECORD, cpuUs: 500, start: 'host-cold' })
  metrics.recorded({ ...RECORD, outcome: 'timeout', cpuUs: 250_000, start: 'host-cold' })
  metrics.recorded({ ...RECORD, outcome: 'refused', error: 'saturated' })
  metrics.recorded({ ...RECORD, functionName: 'other', start: 'function-cold', cpuUs: 2_000_000 })
  const families = await render(metrics)
  const invocations = families['faas_invocations_total']!
  t.equal(valueOf(invocations, { ...SAMPLE, outcome: 'ok' }), 2)
  t.equal(valueOf(invocations, { ...SAMPLE, outcome: 'timeout' }), 1)
  t.equal(valueOf(invocations, { ...SAMPLE, outcome: 'refused' }), 1)
  t.equal(valueOf(invocations, { ...OTHER, outcome: 'ok' }), 1)
  t.equal(invocations.samples.length, 4)
  const coldStarts = families['faas_coldstarts_total']!
  t.equal(valueOf(coldStarts, { ...SAMPLE, kind: 'host-cold' }), 2)
  t.equal(valueOf(coldStarts, { ...OTHER, kind: 'function-cold' }), 1)
  t.equal(coldStarts.samples.length, 2)
  const cpu = families['faas_cpu_usage_seconds_total']!
  t.ok(Math.abs((valueOf(cpu, SAMPLE) ?? 0) - 0.252) < 1e-9)
  t.equal(valueOf(cpu, OTHER), 2)
})

t.test('what came from HTTP and what did not are told apart, in the words of the conventions', async (t) => {
  const metrics = new ServerMetrics()
  metrics.recorded({ ...RECORD, cpuUs: 1_000_000 })
  metrics.recorded({ ...RECORD, trigger: 'cli', cpuUs: 2_000_000 })
  const families = await render(metrics)
  const fromCommandLine = { function: 'sample', trigger: 'other' }
  t.equal(valueOf(families['faas_cpu_usage_seconds_total'], SAMPLE), 1)
  t.equal(valueOf(families['faas_cpu_usage_seconds_total'], fromCommandLine), 2)
  t.equal(valueOf(families['faas_invocations_total'], { ...fromCommandLine, outcome: 'ok' }), 1)
  t.equal(valueOf(families['faas_invoke_duration_seconds'], fromCommandLine, 'faas_invoke_duration_seconds_count'), 1)
})

t.test('errors, timeouts, clients that left and refusals are apart: with the answers they are all invocations', async (t) => {
  const metrics = new ServerMetrics()
  const outcomes = [...(Object.keys(OUTCOMES) as Outcome[]), 'refused'] as const
  for (const outcome of outcomes) metrics.recorded({ ...RECORD, outcome })
  const families = await render(metrics)
  t.equal(sumOf(families['faas_invocations_total']), outcomes.length)
  t.equal(valueOf(families['faas_timeouts_total'], SAMPLE), 1)
  t.equal(valueOf(families['faas_errors_total'], SAMPLE), outcomes.length - ['ok', 'timeout', 'canceled', 'refused'].length)
})

t.test('bytes are told by direction and peer, and memory as it was at the end of invocations', async (t) => {
  const metrics = new ServerMetrics()
  const used = { bytesIn: 1, bytesOut: 20, egressBytesIn: 300, egressBytesOut: 4_000 }
  metrics.recorded({ ...RECORD, ...used, memoryPeakKb: 3 * 1024 })
  metrics.recorded({ ...RECORD, ...used, memoryPeakKb: 4 * 1024 })
  metrics.recorded({ ...RECORD, ...used, memoryPeakKb: 0, outcome: 'host-lost' })
  metrics.recorded({ ...RECORD, bytesIn: 50_000, outcome: 'refused', error: 'saturated' })
  const { faas_net_io_bytes_total: bytes, faas_mem_usage_bytes: memory } = await render(metrics)
  t.equal(valueOf(bytes, { ...SAMPLE, direction: 'receive', peer: 'client' }), 3)
  t.equal(valueOf(bytes, { ...SAMPLE, direction: 'transmit', peer: 'client' }), 60)
  t.equal(valueOf(bytes, { ...SAMPLE, direction: 'receive', peer: 'upstream' }), 900)
  t.equal(valueOf(bytes, { ...SAMPLE, direction: 'transmit', peer: 'upstream' }), 12_000)
  const mebibyte = 1024 * 1024
  t.equal(valueOf(memory, { ...SAMPLE, le: String(2 * mebibyte) }), 0)
  t.equal(valueOf(memory, { ...SAMPLE, le: String(4 * mebibyte) }), 2)
  t.equal(valueOf(memory, SAMPLE, 'faas_mem_usage_bytes_sum'), 7 * mebibyte)
})

t.test('CPU time of the hosts is told by what it was for', async (t) => {
  const metrics = new ServerMetrics()
  metrics.recorded({ ...RECORD, cpuUs: 1_000_000, initCpuUs: 500_000 })
  metrics.usedInBackground(250_000)
  metrics.hostCpu(1, { processUs: 1, loopUs: 1, isolatesUs: 0, blanksUs: 0, memoryWatchUs: 0 })
  metrics.hostCpu(1, { processUs: 9_000_000, loopUs: 3_000_000, isolatesUs: 4_000_000, blanksUs: 125_000, memoryWatchUs: 62_500 })
  const { carpool_host_cpu_seconds: cpu, carpool_unattributed_cpu_seconds: unattributed } = await render(metrics)
  const parts = {
    'invocations': 1,
    'starts': 0.5,
    'background': 0.25,
    'blanks': 0.125,
    'memory-watch': 0.0625,
    'loop': 3,
    'threads': 2,
    'unattributed': 2.0625,
  }
  for (const part of CPU_PARTS) t.equal(valueOf(cpu, { part }), parts[part], part)
  t.equal(valueOf(unattributed, {}), 2.0625)
  t.equal(cpu!.samples.length, CPU_PARTS.length)
})

t.test('durations are without queue and init; only cold invocations have an init, and what was refused has none', async (t) => {
  const metrics = new ServerMetrics()
  metrics.recorded({ ...RECORD, wallUs: 9_000, queueUs: 4_000 })
  metrics.recorded({ ...RECORD, wallUs: 90_000, queueUs: 4_000, initUs: 36_000, start: 'isolate-cold' })
  metrics.recorded({ ...RECORD, wallUs: 1_000_000, queueUs: 1_000_000, outcome: 'refused', error: 'saturated' })
  const families = await render(metrics)
  const duration = families['faas_invoke_duration_seconds']!
  const init = families['faas_init_duration_seconds']!
  const bucket = (family: Family, le: string): number | undefined => valueOf(family, { ...SAMPLE, le })
  t.strictSame(
    [bucket(duration, '0.0025'), bucket(duration, '0.005'), bucket(duration, '0.05'), bucket(duration, '+Inf')],
    [0, 1, 2, 2],
  )
  t.ok(Math.abs((valueOf(duration, SAMPLE, 'faas_invoke_duration_seconds_sum') ?? 0) - 0.055) < 1e-9)
  t.strictSame([bucket(init, '0.025'), bucket(init, '0.05'), bucket(init, '+Inf')], [0, 1, 1])
  t.equal(valueOf(init, SAMPLE, 'faas_init_duration_seconds_sum'), 0.036)
  t.equal(valueOf(init, SAMPLE, 'faas_init_duration_seconds_count'), 1)
})

t.test('reading changes nothing, also twice at once', async (t) => {
  const metrics = new ServerMetrics()
  metrics.recorded({ ...RECORD, cpuUs: 1_000, start: 'host-cold', wallUs: 5_000 })
  metrics.hostCpu(1, { processUs: 5, loopUs: 4, isolatesUs: 3, blanksUs: 2, memoryWatchUs: 1 })
  // The process itself goes on.
  const own = async (): Promise<unknown> =>
    Object.entries(await render(metrics)).filter(([name]) => !/^(?:process|nodejs)_/.test(name))
  const [first, second] = await Promise.all([own(), own()])
  t.strictSame(first, second)
  t.strictSame(await own(), first)
})

t.test('names that need it are escaped', async (t) => {
  const metrics = new ServerMetrics()
  const names = ['quote"', 'back\\slash', 'new\nline', '\\n', 'a="b",c="d"} 1', 'grüße']
  for (const functionName of names) metrics.recorded({ ...RECORD, functionName, start: 'host-cold' })
  const families = await render(metrics)
  for (const [name, { samples }] of Object.entries(families)) {
    if (name.startsWith('faas_')) t.strictSame([...new Set(samples.map(({ labels }) => labels['function']))], names, name)
  }
})

t.test('whatever was recorded, the output is in the format and adds up', async () => {
  const record = fc
    .record({
      functionName: fc.oneof(fc.constantFrom('a', 'b', 'constructor'), fc.string({ maxLength: 5 })),
      outcome: fc.constantFrom('ok', 'exception', 'cpu-exceeded', 'refused'),
      start: fc.constantFrom(...START_KINDS),
      cpuUs: fc.nat(10_000_000),
      wallUs: fc.nat(60_000_000),
      queueUs: fc.nat(1_000_000),
      initUs: fc.nat(1_000_000),
    })
    .map((figures): InvocationRecord => ({ ...RECORD, ...figures }))
  await fc.assert(
    fc.asyncProperty(fc.array(record, { maxLength: 30, size: 'max' }), async (records) => {
      const metrics = new ServerMetrics()
      for (const each of records) metrics.recorded(each)
      const families = await render(metrics)
      const ran = records.filter(({ outcome }) => outcome !== 'refused')
      const cold = ran.filter(({ start }) => start !== 'warm')
      return (
        sumOf(families['faas_invocations_total']) === records.length &&
        sumOf(families['faas_coldstarts_total']) === cold.length &&
        observed(families['faas_invoke_duration_seconds']!) === ran.length &&
        observed(families['faas_init_duration_seconds']!) === cold.length
      )
    }),
  )
})

/** How many values a histogram has seen; NaN if it is not one: its buckets must rise, and end in `+Inf` with the count. */
function observed({ samples }: Family): number {
  let sum = 0
  for (const ofFunction of Map.groupBy(samples, ({ labels }) => labels['function']).values()) {
    const named = (suffix: string): Sample[] => ofFunction.filter(({ name }) => name.endsWith(suffix))
    const buckets = named('_bucket')
    const bounds = buckets.map(({ labels }) => Number(labels['le']?.replace('Inf', 'Infinity')))
    const isRising = buckets.every(
      ({ value }, index) => index === 0 || (value >= buckets[index - 1]!.value && bounds[index]! > bounds[index - 1]!),
    )
    const [count] = named('_count')
    const isWhole = named('_sum').length === 1 && bounds.at(-1) === Infinity && buckets.at(-1)?.value === count?.value
    sum += isRising && isWhole ? (count?.value ?? Number.NaN) : Number.NaN
  }
  return sum
}
