import type { FleetView, HostView, Load, ScalingPolicy } from '../../src/scaling/scaling-policy.ts'

export const POLICY: ScalingPolicy = {
  minHosts: 1,
  maxHosts: 4,
  saturationPercent: 80,
  saturationWindowMs: 5_000,
  panicPercent: 95,
  panicWindowMs: 1_000,
  machineFullPercent: 85,
  growPauseMs: 5_000,
  shrinkWindowMs: 60_000,
  shrinkPauseMs: 20_000,
  shrinkPercent: 60,
}

export const IDLE: Load = { cpuCores: 0.01, loopUtilization: 0.01, delayedShare: 0, spanMs: 60_000 }
export const SATURATED: Load = { ...IDLE, cpuCores: 0.85, delayedShare: 0.7 }
export const FULL: Load = { ...IDLE, cpuCores: 1, delayedShare: 1 }

/** A host that has been ready since 0, with the same load over all windows. */
export function host(id: number, load: Load = IDLE, others: Partial<HostView> = {}): HostView {
  return { id, state: 'ready', readySinceMs: 0, memoryBytes: 1e8, panic: load, steady: load, long: load, ...others }
}

export function fleet(hosts: readonly HostView[], others: Partial<FleetView> = {}): FleetView {
  const machineBusyCores = hosts.reduce((sum, { panic }) => sum + panic.cpuCores, 0)
  return { atMs: 100_000, cores: 4, machineBusyCores, freeBytes: 1e9, hosts, ...others }
}
