import { HOST_STATES } from '@carpool/core'
import fc from 'fast-check'
import t from 'tap'
import { spreadOf, type FleetReading, type HostReading } from '../../src/metrics/fleet-metrics.ts'
import { ServerMetrics } from '../../src/metrics/server-metrics.ts'
import { FLEET, HOST, metricsOf, RECORD, render, valueOf } from './support/readings.ts'

/** Metrics of a fleet whose hosts a test changes. */
function metricsOfHosts(hosts: HostReading[], rest: Partial<FleetReading> = {}): ServerMetrics {
  return metricsOf({ ...FLEET, ...rest, hosts })
}

t.test('hosts are counted by state, and a state without hosts is 0', async (t) => {
  const hosts = (['standby', 'ready', 'ready', 'gone'] as const).map((state, id): HostReading => ({ ...HOST, id, state }))
  const { carpool_hosts: byState } = await render(metricsOfHosts(hosts))
  t.strictSame(
    byState?.samples.map(({ labels, value }) => [labels['state'], value]),
    HOST_STATES.map((state) => [state, { standby: 1, ready: 2, gone: 1 }[state as string] ?? 0]),
  )
})

t.test('the figures of the fleet and of each host, in base units', async (t) => {
  const families = await render(metricsOfHosts([HOST, { ...HOST, id: 7, running: 3, state: 'saturated' }]))
  const figures = {
    carpool_invocations_in_flight: 30,
    carpool_invocations_queued: 5,
    carpool_machine_cores: 1.5,
    carpool_machine_busy_cores: 1.25,
  }
  for (const [name, value] of Object.entries(figures)) t.equal(valueOf(families[name], {}), value, name)
  const ofHost = {
    carpool_host_running: 12,
    carpool_host_limit: 64,
    carpool_host_saturation: 0.75,
    carpool_host_cpu_cores: 0.75,
    carpool_host_loop_utilization: 0.25,
    carpool_host_loop_delay_seconds: 0.002,
    carpool_host_entered_isolates: 2,
    carpool_host_isolates: 40,
    carpool_host_memory_bytes: 268_435_456,
    carpool_host_invocations_total: 0,
  }
  for (const [name, value] of Object.entries(ofHost)) {
    t.equal(valueOf(families[name], { host: '1' }), value, name)
    t.equal(families[name]?.samples.length, 2, name)
  }
  t.equal(valueOf(families['carpool_host_running'], { host: '7' }), 3)
  const delays = families['carpool_host_run_delay_seconds']
  t.equal(delays?.type, 'summary')
  t.strictSame(
    delays?.samples.filter(({ labels }) => labels['host'] === '1').map(({ labels, value }) => [labels['quantile'], value]),
    [
      ['0.5', 0.000_25],
      ['0.9', 0.004],
      ['0.99', 0.016],
    ],
  )
})

t.test('what a host has not told yet has no series', async (t) => {
  const unknown = { p50: Number.NaN, p90: Number.NaN, p99: Number.NaN }
  const starting: HostReading = { ...HOST, state: 'starting', cpuCores: Number.NaN, runDelayMs: unknown }
  const families = await render(metricsOfHosts([starting]))
  t.strictSame(families['carpool_host_cpu_cores']?.samples, [])
  t.strictSame(families['carpool_host_run_delay_seconds']?.samples, [])
  t.equal(valueOf(families['carpool_host_running'], { host: '1' }), 12)
})

t.test('invocations spread over the hosts that serve, and those of hosts that are gone are forgotten', async (t) => {
  const hosts: HostReading[] = [HOST, { ...HOST, id: 2, state: 'draining' }, { ...HOST, id: 3, state: 'standby' }]
  const metrics = metricsOfHosts(hosts)
  for (const host of [1, 1, 1, 1, 2, 2]) metrics.recorded({ ...RECORD, host })
  metrics.recorded({ ...RECORD, host: 0, outcome: 'refused', error: 'saturated' })
  metrics.recorded({ ...RECORD, host: 1, outcome: 'refused', error: 'internal' })
  const before = await render(metrics)
  t.strictSame(
    before['carpool_host_invocations_total']?.samples.map(({ labels, value }) => [labels['host'], value]),
    [
      ['1', 4],
      ['2', 2],
      ['3', 0],
    ],
  )
  t.equal(valueOf(before['carpool_host_invocations_mean'], {}), 3)
  t.equal(valueOf(before['carpool_host_invocations_stddev'], {}), 1)

  hosts[1] = { ...HOST, id: 2, state: 'gone' }
  // Of the host that is gone: its last calls may be answered after its end.
  metrics.recorded({ ...RECORD, host: 2, outcome: 'host-lost' })
  const after = await render(metrics)
  for (const [name, { samples }] of Object.entries(after)) {
    t.notOk(
      samples.some(({ labels }) => labels['host'] === '2'),
      name,
    )
  }
  t.equal(valueOf(after['carpool_host_invocations_mean'], {}), 4)
  t.equal(valueOf(after['carpool_host_invocations_stddev'], {}), 0)
  hosts[1] = { ...HOST, id: 2, state: 'ready' }
  t.equal(valueOf((await render(metrics))['carpool_host_invocations_total'], { host: '2' }), 0, 'really forgotten')
})

t.test('the fleet is looked at once for each reading, so that all of it fits together', async (t) => {
  let looks = 0
  const metrics = new ServerMetrics()
  metrics.watchFleet(() => {
    looks++
    return { ...FLEET, inFlight: looks, queued: looks }
  })
  const [first, second] = await Promise.all([render(metrics), render(metrics)])
  t.equal(looks, 2)
  for (const [index, families] of [first, second].entries()) {
    t.equal(valueOf(families['carpool_invocations_in_flight'], {}), index + 1)
    t.equal(valueOf(families['carpool_invocations_queued'], {}), index + 1)
  }
})

t.test('a fleet that cannot be looked at is an error of the reading', async (t) => {
  const metrics = new ServerMetrics()
  metrics.watchFleet(() => {
    throw new Error('no fleet')
  })
  await t.rejects(metrics.render(), { message: 'no fleet' })
})

t.test('starts and decisions are counted by what they came to', async (t) => {
  const metrics = metricsOfHosts([HOST])
  for (const result of ['ready', 'failed', 'failed'] as const) metrics.hostStarted(result)
  metrics.scaled('grow', 'saturated')
  metrics.scaled('grow', 'panic')
  metrics.scaled('grow', 'panic')
  metrics.scaled('shrink', 'idle')
  const { carpool_host_starts_total: starts, carpool_scaling_decisions_total: decisions } = await render(metrics)
  t.equal(valueOf(starts, { result: 'ready' }), 1)
  t.equal(valueOf(starts, { result: 'failed' }), 2)
  t.equal(valueOf(decisions, { action: 'grow', reason: 'saturated' }), 1)
  t.equal(valueOf(decisions, { action: 'grow', reason: 'panic' }), 2)
  t.equal(valueOf(decisions, { action: 'shrink', reason: 'idle' }), 1)
})

t.test('mean and population standard deviation', async (t) => {
  t.strictSame(spreadOf([2, 4, 4, 4, 5, 5, 7, 9]), { mean: 5, stddev: 2 })
  t.strictSame(spreadOf([7]), { mean: 7, stddev: 0 })
  t.strictSame(spreadOf([]), { mean: 0, stddev: 0 })
})

t.test('counts of years that differ by little', async (t) => {
  t.strictSame(spreadOf([1e15, 1e15 + 2]), { mean: 1e15 + 1, stddev: 1 })
})

t.test('whatever the counts, the spread is within their range, and grows with them', async () => {
  fc.assert(
    fc.property(fc.array(fc.nat(1_000_000), { minLength: 1 }), fc.integer({ min: 2, max: 9 }), (counts, factor) => {
      const { mean, stddev } = spreadOf(counts)
      const range = Math.max(...counts) - Math.min(...counts)
      const multiple = spreadOf(counts.map((count) => count * factor))
      const isNear = (a: number, b: number): boolean => Math.abs(a - b) <= 1e-6 * (1 + Math.abs(b))
      return (
        mean >= Math.min(...counts) - 1e-6 &&
        mean <= Math.max(...counts) + 1e-6 &&
        stddev <= range / 2 + 1e-6 &&
        stddev > 0 === range > 0 &&
        isNear(multiple.stddev, factor * stddev)
      )
    }),
  )
})
