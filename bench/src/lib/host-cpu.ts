import { CPU_PARTS, type CpuPart } from '@carpool/telemetry'

/** Where the CPU time of all host processes of a server went since it started, by what it was for, in seconds. */
export type HostCpu = Readonly<Record<CpuPart, number>>

/** Reads `carpool_host_cpu_seconds` from metrics in Prometheus' text format. @throws Error if a part is missing */
export function parseHostCpu(metrics: string): HostCpu {
  const found = new Map(
    [...metrics.matchAll(/^carpool_host_cpu_seconds\{part="([^"]+)"\} (\S+)$/gm)].map(([, part, value]) => [part, Number(value)]),
  )
  return mapParts((part) => {
    const value = found.get(part)
    if (value === undefined) throw new Error(`The metrics have no carpool_host_cpu_seconds of ${part}.`)
    return value
  })
}

/** What was used between two readings. */
export function hostCpuBetween(before: HostCpu, after: HostCpu): HostCpu {
  return mapParts((part) => after[part] - before[part])
}

/** CPU time of the isolates by their own clocks. */
export function isolatesCpu(cpu: HostCpu): number {
  return functionsCpu(cpu) + cpu['blanks'] + cpu['memory-watch']
}

/** The same without what no function asked for: making isolates and looking at their memory. */
export function functionsCpu(cpu: HostCpu): number {
  return cpu.invocations + cpu.starts + cpu.background + cpu.unattributed
}

function mapParts(value: (part: CpuPart) => number): HostCpu {
  return Object.fromEntries(CPU_PARTS.map((part) => [part, value(part)])) as Record<CpuPart, number>
}
