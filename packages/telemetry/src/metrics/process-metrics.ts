import { readdirSync, readFileSync } from 'node:fs'
import type { Metric } from 'prom-client'
import { metricOf, NO_LABELS, type Labels, type MetricOptions, type Sample } from './metric.ts'

const STARTED_AT_SECONDS = Math.round((Date.now() - performance.now()) / 1000)

/**
 * The server process itself, under the names that Prometheus' clients have in common. prom-client's `collectDefaultMetrics` is
 * not used: its timer for the delay of the event loop takes about 2 ms of CPU time each second in an idle process, its observer
 * runs at every collection of garbage, and some of its gauges end in `_total`, which Prometheus keeps for counters. These here
 * cost nothing between scrapes.
 */
export function processMetrics(): Metric[] {
  return [
    one('counter', 'process_cpu_seconds_total', 'CPU time of the server process.', () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    }),
    one('counter', 'process_cpu_user_seconds_total', 'CPU time in user mode.', () => process.cpuUsage().user / 1e6),
    one('counter', 'process_cpu_system_seconds_total', 'CPU time in the kernel.', () => process.cpuUsage().system / 1e6),
    one(
      'gauge',
      'process_start_time_seconds',
      'When the server process started, in the time of the epoch.',
      () => STARTED_AT_SECONDS,
    ),
    one('gauge', 'process_resident_memory_bytes', 'Resident memory of the server process.', () => process.memoryUsage.rss()),
    one('gauge', 'process_open_fds', 'Open file descriptors; on Linux only.', openFiles),
    one('gauge', 'process_max_fds', 'Most file descriptors that may be open; on Linux only.', maxFiles),
    many('counter', 'nodejs_eventloop_time_seconds_total', 'Time that the event loop of the server was active and idle.', () => {
      const { active, idle } = performance.eventLoopUtilization()
      return [sample({ state: 'active' }, active / 1e3), sample({ state: 'idle' }, idle / 1e3)]
    }),
    one('gauge', 'nodejs_heap_size_total_bytes', 'Heap of the server.', () => process.memoryUsage().heapTotal),
    one('gauge', 'nodejs_heap_size_used_bytes', 'Heap of the server in use.', () => process.memoryUsage().heapUsed),
    one(
      'gauge',
      'nodejs_external_memory_bytes',
      'Memory that the heap of the server holds outside.',
      () => process.memoryUsage().external,
    ),
    many('gauge', 'nodejs_version_info', 'Version of Node.js.', () => [sample({ version: process.version }, 1)]),
  ]
}

/** Not a number where there is no /proc. */
function openFiles(): number {
  try {
    // Reading the folder has it open.
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    return Number.NaN
  }
}

function maxFiles(): number {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return Number(limit)
  } catch {
    return Number.NaN
  }
}

function many(type: MetricOptions['type'], name: string, help: string, read: () => Sample[]): Metric {
  return metricOf({ type, name, help, read })
}

function one(type: MetricOptions['type'], name: string, help: string, read: () => number): Metric {
  return metricOf({ type, name, help, read: () => [sample(NO_LABELS, read())] })
}

function sample(labels: Labels, value: number): Sample {
  return { labels, value }
}
