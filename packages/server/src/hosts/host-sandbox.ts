import { hostMemory } from '@carpool/core'
import { detectSandbox, isLayerName, requireLayers, type GroupLimits, type LayerName, type Sandbox } from '@carpool/sandbox'
import type { ServerSettings } from '../settings/table.ts'
import { hostFolders } from './host-files.ts'
import { hostMemoryBytes, PERMISSION_FLAGS } from './host-program.ts'

/**
 * Finds out which layers this machine can put around hosts.
 * @param onProblem called with a sentence if a host gets less of it than others
 * @param onlyLooks nothing of the system is changed for it
 */
export async function openSandbox(
  settings: ServerSettings,
  onProblem: (text: string) => void = () => {},
  onlyLooks = false,
): Promise<Sandbox> {
  return await detectSandbox({
    isOff: settings.sandbox === 'off',
    nodePath: process.execPath,
    nodeFlags: PERMISSION_FLAGS,
    folders: hostFolders(),
    hostUid: settings.hostUid,
    limits: groupLimits({ budgetBytes: hostMemoryBytes(settings), maxIsolates: settings.maxIsolates }),
    onProblem,
    onlyLooks,
  })
}

/** The layers that the settings insist on; empty: the main ones; undefined: none. */
export function requiredLayers({ sandbox, sandboxRequire }: ServerSettings): readonly LayerName[] | undefined {
  const named = sandboxRequire.filter(isLayerName)
  return sandbox === 'require' || named.length > 0 ? named : undefined
}

/**
 * {@link openSandbox}, for a server.
 * @throws CarpoolError `sandbox-unavailable` if the settings require a layer that this machine does not have
 */
export async function openRequiredSandbox(settings: ServerSettings, onProblem: (text: string) => void): Promise<Sandbox> {
  const sandbox = await openSandbox(settings, onProblem)
  const required = requiredLayers(settings)
  if (required !== undefined) requireLayers(sandbox.layers, required)
  return sandbox
}

/** Threads of Node.js and V8 themselves are about a dozen, and bubblewrap takes two processes. */
const TASKS_BESIDES = 128
/** An isolate takes one thread while it runs. One that was given up may not have come to its end. */
const TASKS_PER_ISOLATE = 2

/** What the system lets one host take, well above what it is to take by its own account: a backstop. Pure. */
export function groupLimits({ budgetBytes, maxIsolates }: { budgetBytes: number; maxIsolates: number }): GroupLimits {
  return { memoryBytes: hostMemory(budgetBytes).groupBytes, tasks: TASKS_BESIDES + maxIsolates * TASKS_PER_ISOLATE }
}
