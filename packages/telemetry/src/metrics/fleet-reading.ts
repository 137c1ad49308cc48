import type { HostInfo } from '@carpool/core'

/** One host at this moment. What is not known yet is NaN, and has no series. */
export type HostReading = Pick<
  HostInfo,
  | 'id'
  | 'state'
  | 'running'
  | 'limit'
  | 'runDelayMs'
  | 'saturation'
  | 'cpuCores'
  | 'loopUtilization'
  | 'loopDelayMs'
  | 'enteredIsolates'
  | 'isolates'
  | 'memoryBytes'
>

/** All hosts, and what there is for them to do, at this moment. */
export interface FleetReading {
  /** Those that are gone are counted and have no series of their own. */
  readonly hosts: readonly HostReading[]
  /** Invocations that were admitted and not answered yet, the queued ones included. */
  readonly inFlight: number
  /** Invocations that wait for a place in a host. */
  readonly queued: number
  /** Cores that this server and its hosts may use; may be a fraction. */
  readonly machineCores: number
  /** Of all cores of the machine, those that were busy lately, whoever used them. */
  readonly machineBusyCores: number
}
