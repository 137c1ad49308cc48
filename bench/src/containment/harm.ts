import type { FleetSample } from '../lib/watch/fleet-sample.ts'

/** States of a host that is there for calls. */
const USABLE: ReadonlySet<string> = new Set(['ready', 'saturated'])

/** Ids of the hosts that were harmed: those that were poisoned, and those that took calls and are gone without having drained. */
export function harmedHosts(samples: ReadonlyArray<Pick<FleetSample, 'hosts'>>): number[] {
  const harmed = new Set<number>()
  const taking = new Set<number>()
  for (const { hosts } of samples) {
    const there = new Set<number>()
    for (const { id, state } of hosts) {
      if (state === 'poisoned') harmed.add(id)
      if (state !== 'gone') there.add(id)
      if (USABLE.has(state)) taking.add(id)
      else if (state !== 'gone') taking.delete(id)
    }
    for (const id of taking) {
      if (there.has(id)) continue
      harmed.add(id)
      taking.delete(id)
    }
  }
  return [...harmed].toSorted((a, b) => a - b)
}

/** The process ids that hosts had. */
export function hostPids(samples: ReadonlyArray<Pick<FleetSample, 'processes'>>): Set<number> {
  return new Set(samples.flatMap(({ processes }) => processes.map(({ pid }) => pid)))
}

/**
 * CPU that host processes used from the first sample to the last, in ms; what one used after the last sample that has it is
 * missing.
 */
export function hostCpuMs(samples: ReadonlyArray<Pick<FleetSample, 'processes'>>): number {
  const [first] = samples
  const begun = new Map(first?.processes.map(({ pid, cpuSeconds }) => [pid, cpuSeconds]))
  const latest = new Map(samples.flatMap(({ processes }) => processes.map(({ pid, cpuSeconds }) => [pid, cpuSeconds] as const)))
  return [...latest].reduce((sum, [pid, cpuSeconds]) => sum + (cpuSeconds - (begun.get(pid) ?? 0)) * 1000, 0)
}
