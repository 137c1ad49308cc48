import { createHook } from 'node:async_hooks'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { ServerMetrics } from '../../src/metrics/server-metrics.ts'
import { render, valueOf } from './support/rendered.ts'

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
