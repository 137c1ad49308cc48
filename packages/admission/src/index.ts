export { Admission, type AdmissionOptions } from './admission.ts'
export { FairQueue, type Pushed, type Queued } from './fair-queue.ts'
export { hasRoom, type HostRoom } from './has-room.ts'
export { initialHostLimit, nextHostLimit, type HostLimit, type HostLimitPolicy, type HostLimitSample } from './host-limit.ts'
export { laneCapacity, laneLimit } from './lane-limit.ts'
export { queueTimeoutMs, takeOrder, type QueueOrder, type QueueState, type QueueTimeoutPolicy } from './queue-timeout.ts'
export { RunDelayHistogram, type RunDelaySummary } from './run-delay.ts'
export { decideScaling, initialScalingMemory } from './scaling-policy.ts'
export type {
  FleetView,
  GrowReason,
  HostView,
  Load,
  ScalingDecision,
  ScalingFigures,
  ScalingMemory,
  ScalingPolicy,
  ScalingReason,
  WaitReason,
} from './scaling-types.ts'
export { StandingQueue, type StandingQueuePolicy } from './standing-queue.ts'
