import type { HostLimitPolicy } from '../../src/scaling/host-limit.ts'
import type { QueuePolicy } from '@carpool/admission'
import type { ScalingPolicy } from '../../src/scaling/scaling-policy.ts'
import { POLICY } from '../support/scaling-views.ts'

/** A call: it runs for each of `cpuMs`, and waits for each of `waitMs` in between. */
export interface Call {
  readonly functionName: string
  /** Default: one who has no other function. */
  readonly owner?: string
  readonly cpuMs: readonly number[]
  readonly waitMs?: readonly number[]
  /** When its client leaves, in ms after it came. Default: never. */
  readonly patienceMs?: number
  /** What came of it. */
  readonly settled?: (how: Settled, tookMs: number) => void
}

export type Settled = 'answered' | 'refused' | 'departed'

export interface Settings extends HostLimitPolicy, QueuePolicy, Omit<ScalingPolicy, 'maxHosts'> {
  readonly cores: number
  readonly maxHosts: number
  readonly maxQueued: number
  /** p90 run delay that is good, in ms. */
  readonly runDelayTargetMs: number
  readonly memoryBytes: number
}

export const DEFAULTS: Settings = {
  ...POLICY,
  cores: 2,
  maxHosts: 2,
  memoryBytes: 4e9,
  initial: 64,
  min: 4,
  max: 1000,
  runDelayTargetMs: 5,
  targetMs: 100,
  intervalMs: 1_000,
  maxQueueMs: 10_000,
  maxQueued: 10_000,
}
