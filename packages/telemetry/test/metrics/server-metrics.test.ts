import { createHook } from 'node:async_hooks'
import { setImmediate } from 'node:timers/promises'
import { OUTCOMES, START_KINDS, type InvocationRecord, type Outcome } from '@carpool/core'
import fc from 'fast-check'
import t from 'tap'
import { CPU_PARTS, CpuAccount } from '../../src/metrics/cpu-metrics.ts'
import { ServerMetrics } from '../../src/metrics/server-metrics.ts'
import { EGRESS, RECORD, render, sumOf, valueOf } from './support/readings.ts'
import type { Family, Sample } from './support/text-format.ts'

const NAMES = [
  'carpool_function_strikes_total',
  'carpool_function_unhandled_rejections_total',
  'carpool_host_cpu_seconds',
  'carpool_host_starts_total',
  'carpool_hosts_poisoned_total',
  'carpool_open_sockets',
  'carpool_open_streams',
  'carpool_queue_seconds',
  'carpool_scaling_decisions_total',
  'carpool_shed_total',
  'carpool_unattributed_cpu_seconds',
  'carpool_unrecorded_total',
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

t.test('what functions do outside is told as it is at each scrape', async (t) => {
  let reading = EGRESS
  const metrics = new ServerMetrics()
  metrics.watchEgress(() => reading)
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

t.test('what is open is told for each function and in all, and goes back to 0', async (t) => {
  const metrics = new ServerMetrics()
  const { streams } = metrics
  streams.changed('sample', 'answer', 1)
  streams.changed('sample', 'answer', 1)
  streams.changed('sample', 'websocket', 1)
  streams.changed('other', 'socket', 1)
  const { totals } = streams
  const { carpool_open_streams: open, carpool_open_sockets: sockets } = await render(metrics)
  t.equal(valueOf(open, { function: 'sample', kind: 'answer' }), 2)
  t.equal(valueOf(open, { function: 'sample', kind: 'websocket' }), 1)
  t.equal(valueOf(open, { function: 'other', kind: 'answer' }), 0)
  t.equal(valueOf(sockets, { function: 'other' }), 1)
  streams.changed('sample', 'answer', -1)
  streams.changed('sample', 'answer', -1)
  streams.changed('sample', 'websocket', -1)
  streams.changed('other', 'socket', -1)
  const after = await render(metrics)
  t.equal(valueOf(after['carpool_open_streams'], { function: 'sample', kind: 'answer' }), 0)
  t.equal(sumOf(after['carpool_open_streams']), 0)
  t.equal(sumOf(after['carpool_open_sockets']), 0)
  t.strictSame(totals, { answer: 2, websocket: 1, socket: 1 }, 'as it was when it was read')
  t.strictSame(streams.totals, { answer: 0, websocket: 0, socket: 0 })
})

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
  t.equal(valueOf((await render(metrics))['carpool_unrecorded_total'], {}), 0, 'none is without a record yet')
  metrics.unrecorded()
  t.equal(valueOf((await render(metrics))['carpool_unrecorded_total'], {}), 1)
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

t.test('the process is told as it is', async (t) => {
  // The loop's time begins with its first turn.
  await setImmediate()
  const metrics = new ServerMetrics()
  const first = await render(metrics)
  const cpu = valueOf(first['process_cpu_seconds_total'], {}) ?? 0
  t.ok(cpu > 0)
  t.ok((valueOf(first['process_resident_memory_bytes'], {}) ?? 0) > 10_000_000)
  t.ok((valueOf(first['nodejs_heap_size_used_bytes'], {}) ?? 0) <= (valueOf(first['nodejs_heap_size_total_bytes'], {}) ?? 0))
  t.ok((valueOf(first['process_start_time_seconds'], {}) ?? Infinity) <= Date.now() / 1000 + 1)
  t.equal(valueOf(first['nodejs_version_info'], { version: process.version }), 1)
  while (process.cpuUsage().user / 1e6 < cpu + 0.01) Math.sqrt(2)
  const second = await render(metrics)
  t.ok((valueOf(second['process_cpu_seconds_total'], {}) ?? 0) >= cpu + 0.01)
  t.ok((valueOf(second['nodejs_eventloop_time_seconds_total'], { state: 'active' }) ?? 0) > 0)
})

t.test('files are counted where there is /proc', { skip: process.platform !== 'linux' && 'not Linux' }, async (t) => {
  const families = await render(new ServerMetrics())
  const open = valueOf(families['process_open_fds'], {}) ?? 0
  t.ok(open >= 3)
  t.ok((valueOf(families['process_max_fds'], {}) ?? 0) > open)
})

t.test('between readings nothing runs', async (t) => {
  const started: string[] = []
  const hook = createHook({ init: (_, type) => started.push(type) }).enable()
  const metrics = new ServerMetrics()
  metrics.hostStarted('ready')
  metrics.scaled('grow', 'saturated')
  hook.disable()
  t.strictSame(
    started.filter((type) => type !== 'PROMISE'),
    [],
  )
})

t.test('every part is what was told, and the rest is worked out', async (t) => {
  const account = new CpuAccount()
  account.host(1, { processUs: 1_000, loopUs: 100, isolatesUs: 600, blanksUs: 50, memoryWatchUs: 5 })
  account.host(2, { processUs: 2_000, loopUs: 200, isolatesUs: 700, blanksUs: 60, memoryWatchUs: 6 })
  account.billed('invocations', 400)
  account.billed('invocations', 300)
  account.billed('starts', 200)
  account.billed('background', 100)
  t.strictSame(account.totalsUs(), {
    'invocations': 700,
    'starts': 200,
    'background': 100,
    'blanks': 110,
    'memory-watch': 11,
    'loop': 300,
    'threads': 3_000 - 300 - 1_300,
    'unattributed': 1_300 - 110 - 11 - 1_000,
  })
})

t.test('at first there is nothing', async (t) => {
  const totals = new CpuAccount().totalsUs()
  t.strictSame(Object.keys(totals).toSorted(), [...CPU_PARTS].toSorted())
  t.ok(Object.values(totals).every((us) => us === 0))
})

t.test('whatever is told, the parts add up to the last that each host told, and no bill is lost', async () => {
  const us = fc.nat(1_000_000_000)
  const time = fc.record({ processUs: us, loopUs: us, isolatesUs: us, blanksUs: us, memoryWatchUs: us })
  const step = fc.oneof(
    fc.record({ host: fc.nat(5), time }),
    fc.record({ part: fc.constantFrom('invocations' as const, 'starts' as const, 'background' as const), us }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 50, size: 'max' }), (steps) => {
      const account = new CpuAccount()
      const last = new Map<number, number>()
      const billed = { invocations: 0, starts: 0, background: 0 }
      for (const each of steps) {
        if ('host' in each) {
          account.host(each.host, each.time)
          last.set(each.host, each.time.processUs)
        } else {
          account.billed(each.part, each.us)
          billed[each.part] += each.us
        }
      }
      const totals = account.totalsUs()
      const sum = CPU_PARTS.reduce((sum, part) => sum + totals[part], 0)
      const processUs = [...last.values()].reduce((sum, us) => sum + us, 0)
      return sum === processUs && Object.entries(billed).every(([part, us]) => totals[part as keyof typeof billed] === us)
    }),
  )
})
