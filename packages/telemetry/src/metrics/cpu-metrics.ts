import type { Metric } from 'prom-client'
import { metricOf, NO_LABELS } from './metric.ts'

/** Where the CPU time of one host process went, in µs since it started, as it reports. */
export interface HostCpuTime {
  /** All of it. */
  readonly processUs: number
  /** Its event loop. */
  readonly loopUs: number
  /** Its isolates, by their own clocks. */
  readonly isolatesUs: number
  /** Of the isolates': making them. */
  readonly blanksUs: number
  /** Of the isolates': looking at their memory. */
  readonly memoryWatchUs: number
}

/** The parts into which CPU time of hosts falls. Only the first three are on bills. */
export const CPU_PARTS = [
  'invocations',
  'starts',
  'background',
  'blanks',
  'memory-watch',
  'loop',
  'threads',
  'unattributed',
] as const
export type CpuPart = (typeof CPU_PARTS)[number]

/**
 * Adds up the CPU time of host processes by what it was for. `threads` is what the process used outside its event loop and its
 * isolates: V8's helper threads, and threads that come and go. `unattributed` is CPU time of isolates that is in no record: of
 * what is still under way it becomes part of a record later, so it may go down; what stays is an error of the metering.
 */
export class CpuAccount {
  readonly #hosts = new Map<number, HostCpuTime>()
  #billedUs = { invocations: 0, starts: 0, background: 0 }

  billed(part: 'invocations' | 'starts' | 'background', us: number): void {
    this.#billedUs[part] += us
  }

  /** @param host id, never used again by another process */
  host(host: number, time: HostCpuTime): void {
    this.#hosts.set(host, time)
  }

  totalsUs(): Record<CpuPart, number> {
    const sum = { processUs: 0, loopUs: 0, isolatesUs: 0, blanksUs: 0, memoryWatchUs: 0 }
    for (const time of this.#hosts.values()) for (const key of KEYS) sum[key] += time[key]
    const { invocations, starts, background } = this.#billedUs
    return {
      invocations,
      starts,
      background,
      'blanks': sum.blanksUs,
      'memory-watch': sum.memoryWatchUs,
      'loop': sum.loopUs,
      'threads': sum.processUs - sum.loopUs - sum.isolatesUs,
      'unattributed': sum.isolatesUs - sum.blanksUs - sum.memoryWatchUs - invocations - starts - background,
    }
  }
}

const KEYS = ['processUs', 'loopUs', 'isolatesUs', 'blanksUs', 'memoryWatchUs'] as const

/** Metrics of the CPU time of all host processes together. Gauges, for what is not attributed yet goes down again. */
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
