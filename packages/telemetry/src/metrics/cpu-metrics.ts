import type { Metric } from 'prom-client'
import { CPU_PARTS, type CpuAccount } from './cpu-account.ts'
import { metricOf, NO_LABELS } from './metric.ts'

/** What is told of the CPU time of all host processes together. Gauges, for what is not attributed yet goes down again. */
export function cpuMetrics(cpu: CpuAccount): Metric[] {
  return [
    metricOf({
      type: 'gauge',
      name: 'carpool_host_cpu_seconds',
      help: 'CPU time of all host processes since the server started, by what it was for; unattributed: of isolates, in no record (yet).',
      read: () => {
        const totalsUs = cpu.totalsUs()
        return CPU_PARTS.map((part) => ({ labels: { part }, value: totalsUs[part] / 1e6 }))
      },
    }),
    metricOf({
      type: 'gauge',
      name: 'carpool_unattributed_cpu_seconds',
      help: 'CPU time of isolates since the server started that is in no record (yet): the same part by itself, to watch.',
      read: () => [{ labels: NO_LABELS, value: cpu.totalsUs().unattributed / 1e6 }],
    }),
  ]
}
