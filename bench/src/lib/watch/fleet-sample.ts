import type { HostInfo, StatusInfo } from '@carpool/core'
import type { HostProcess } from './host-processes.ts'

/** A server's hosts at one moment: as the server tells, and as the system has them. */
export interface FleetSample {
  /** In ms of the epoch. */
  readonly atMs: number
  readonly hosts: readonly HostInfo[]
  readonly inFlight: number
  readonly queued: number
  readonly machineBusyCores: number
  readonly processes: readonly HostProcess[]
}

export function fleetSample(atMs: number, status: StatusInfo, processes: readonly HostProcess[]): FleetSample {
  const { hosts, inFlight, queued, machineBusyCores } = status
  return { atMs, hosts, inFlight, queued, machineBusyCores, processes }
}

/** States in which a host takes calls. */
const SERVING: ReadonlySet<string> = new Set(['ready', 'saturated'])

/** Host processes that take calls: neither the standby nor one that starts or leaves. */
export function servingHosts({ hosts }: Pick<FleetSample, 'hosts'>): HostInfo[] {
  return hosts.filter(({ state }) => SERVING.has(state))
}

/** How often the number of serving hosts changed, and how often it fell. */
export function hostChanges(samples: readonly FleetSample[]): { changes: number; shrinks: number } {
  const counts = samples.map((sample) => servingHosts(sample).length)
  const steps = counts.slice(1).map((count, index) => count - (counts[index] ?? 0))
  return { changes: steps.filter((step) => step !== 0).length, shrinks: steps.filter((step) => step < 0).length }
}

export function mostServing(samples: readonly FleetSample[]): number {
  return Math.max(...samples.map((sample) => servingHosts(sample).length))
}

/** Ids of all hosts that ever took calls. */
export function everServing(samples: readonly FleetSample[]): number[] {
  return [...new Set(samples.flatMap((sample) => servingHosts(sample).map(({ id }) => id)))]
}

export function longestGapMs(samples: readonly FleetSample[]): number {
  return Math.max(0, ...samples.slice(1).map(({ atMs }, index) => atMs - (samples[index]?.atMs ?? atMs)))
}

export interface Level {
  readonly atMs: number
  readonly value: number
}

/** CPU of all host processes between each two samples, in cores. A process counts from the first sample that has it. */
export function cpuCores(samples: readonly FleetSample[]): Level[] {
  return samples.slice(1).map(({ atMs, processes }, index) => {
    const before = samples[index]
    const usedBefore = new Map(before?.processes.map(({ pid, cpuSeconds }) => [pid, cpuSeconds]))
    const used = processes.reduce((sum, { pid, cpuSeconds }) => sum + cpuSeconds - (usedBefore.get(pid) ?? cpuSeconds), 0)
    return { atMs, value: (used * 1000) / (atMs - (before?.atMs ?? 0)) }
  })
}
