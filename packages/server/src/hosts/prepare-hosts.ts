import type { SandboxInfo } from '@carpool/core'
import { Machine, type FleetPolicy, type HostProgram } from '@carpool/fleet'
import { sandboxInfo, type LayerReport } from '@carpool/sandbox'
import type { Logger } from 'pino'
import type { ServerSettings } from '../settings/table.ts'
import { hostPrograms } from './host-files.ts'
import { hostProgram } from './host-program.ts'
import { openRequiredSandbox } from './host-sandbox.ts'

/** How the fleet starts host processes, and how many. */
export interface PreparedHosts {
  readonly program: HostProgram
  readonly policy: FleetPolicy
  readonly machine: Machine
  /** What stands around each. */
  readonly sandbox: SandboxInfo
}

/** Starts none yet. @throws CarpoolError of a setting that cannot be met, and `sandbox-unavailable` */
export async function prepareHosts(settings: ServerSettings, log: Logger): Promise<PreparedHosts> {
  const machine = new Machine()
  const policy = fleetPolicy(settings)
  const [programs, sandbox] = await Promise.all([hostPrograms(), openRequiredSandbox(settings, (problem) => log.warn(problem))])
  const { layers } = sandbox
  log.info({ layers: layerStates(layers) }, 'sandbox of host processes')
  return { program: hostProgram(settings, programs, sandbox), policy, machine, sandbox: sandboxInfo(layers) }
}

function layerStates(layers: readonly LayerReport[]): Record<string, string> {
  return Object.fromEntries(layers.map(({ name, state, why }) => [name, state === 'on' ? state : `${state}: ${why}`]))
}

/** The settings that the fleet goes by. */
function fleetPolicy(settings: ServerSettings): FleetPolicy {
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
