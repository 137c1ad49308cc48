import type { FleetPolicy } from '@carpool/fleet'
import type { ServerSettings } from './settings.ts'

/** What of the settings the fleet goes by. */
export function fleetPolicy(settings: ServerSettings): FleetPolicy {
  const { hostLimitInitial, hostLimitMin, hostLimitMax, runDelayTargetMs } = settings
  const { queueTargetMs, queueIntervalMs, maxQueueMs, maxQueued, standbyHosts, hostStartTimeoutMs } = settings
  const { strikeWindowMs, quarantineAfter, disableAfter, quarantineHosts, poisonedDrainMs } = settings
  return {
    scaling: settings,
    limit: { initial: hostLimitInitial, min: hostLimitMin, max: hostLimitMax, targetMs: runDelayTargetMs },
    queue: { targetMs: queueTargetMs, intervalMs: queueIntervalMs, maxQueueMs },
    maxQueued,
    standbyHosts,
    hostStartTimeoutMs,
    strikes: { windowMs: strikeWindowMs, quarantineAfter, disableAfter },
    quarantineHosts,
    poisonedDrainMs,
    recycling: { maxAgeMs: settings.hostMaxAgeMs, maxInvocations: settings.hostMaxInvocations },
  }
}
