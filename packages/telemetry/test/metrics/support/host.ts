import type { FleetReading, HostReading } from '../../../src/metrics/fleet-reading.ts'

/** A host with work. */
export const HOST: HostReading = {
  id: 1,
  state: 'ready',
  running: 12,
  limit: 64,
  runDelayMs: { p50: 0.25, p90: 4, p99: 16 },
  saturation: 0.75,
  cpuCores: 0.75,
  loopUtilization: 0.25,
  loopDelayMs: 2,
  enteredIsolates: 2,
  isolates: 40,
  memoryBytes: 268_435_456,
}

export const FLEET: FleetReading = { hosts: [HOST], inFlight: 30, queued: 5, machineCores: 1.5, machineBusyCores: 1.25 }
