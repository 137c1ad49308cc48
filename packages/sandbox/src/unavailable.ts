import type { Controller } from './control-groups.ts'
import { BUBBLEWRAP_LAYERS, LAYER_NAMES, LAYERS, type LayerName } from './layers.ts'
import type { ToolProblem, Tools } from './tools.ts'

/** Why a layer is not even tried. */
export interface Unavailable {
  readonly state: 'off' | 'unavailable'
  readonly why: string
  /** What helps, in a sentence; absent: what helps in general. */
  readonly remedy?: string
}

/** What is known of the machine and the settings before anything is tried. */
export interface Machine {
  readonly isOff: boolean
  readonly platform: NodeJS.Platform
  /** Those that are sound. */
  readonly tools: Tools
  /** What is wrong with a bubblewrap that is there. */
  readonly bubblewrapProblem: ToolProblem | undefined
  /** Whether there is a filter of system calls for this architecture. */
  readonly hasFilter: boolean
  /** User of the server; undefined where there are no numbers for users. */
  readonly serverUid: number | undefined
  readonly hostUid: number
  /** A file or folder of the program that the user of hosts may not read or enter. */
  readonly unreadable: string | undefined
  /** Why there are no control groups, by controller. */
  readonly missingGroups: ReadonlyMap<Controller, string>
}

/** Layers that cost nothing, and so are never switched off. */
const ALWAYS: ReadonlySet<LayerName> = new Set(['permission', 'inheritance', 'rlimits'])

/** Layers that need not be tried, with the reason. Pure. */
export function unavailableLayers(machine: Machine): ReadonlyMap<LayerName, Unavailable> {
  const reasons = LAYER_NAMES.map((name) => [name, reasonFor(name, machine)] as const)
  return new Map(reasons.flatMap(([name, reason]) => (reason === undefined ? [] : [[name, reason] as const])))
}

function reasonFor(name: LayerName, machine: Machine): Unavailable | undefined {
  const { isOff, platform, tools, bubblewrapProblem, hasFilter, serverUid, hostUid, unreadable, missingGroups } = machine
  if (isOff && !ALWAYS.has(name)) return off('The sandbox is switched off.', 'Set sandbox to auto or require.')
  if (name === 'permission' || name === 'inheritance') return undefined
  if (name === 'rlimits') return tools.sh === undefined ? unavailable('There is no shell.') : undefined
  if (name === 'user') {
    if (hostUid === 0)
      return off('hostUid is 0, so hosts run as the user of the server.', 'Set hostUid to the number of a user of its own.')
    if (serverUid !== 0) return unavailable('The server is not root, so hosts run as its user.')
    return unreadable === undefined ? undefined : unavailable(`User ${hostUid} may not read or enter ${unreadable}.`)
  }
  if (platform !== 'linux') return unavailable('Only Linux has it.', 'Run the server on Linux.')
  if (name === 'cgroup-memory' || name === 'cgroup-tasks') {
    if (tools.sh === undefined) return unavailable('There is no shell.', LAYERS.rlimits.remedy)
    const missing = missingGroups.get(name === 'cgroup-memory' ? 'memory' : 'pids')
    return missing === undefined ? undefined : unavailable(missing)
  }
  if (name === 'no-new-privileges' && tools.setpriv !== undefined) return undefined
  if (name === 'seccomp' && !hasFilter)
    return unavailable('There is no filter for this architecture.', 'x86-64 and ARM64 have one.')
  if (tools.bubblewrap !== undefined) return undefined
  if (bubblewrapProblem !== undefined) return unavailable(bubblewrapProblem.why, bubblewrapProblem.remedy)
  return unavailable(
    BUBBLEWRAP_LAYERS.has(name) ? 'Bubblewrap is not installed.' : 'Neither bubblewrap nor setpriv is installed.',
    'Install it: apt install bubblewrap.',
  )
}

function off(why: string, remedy: string): Unavailable {
  return { state: 'off', why, remedy }
}

function unavailable(why: string, remedy?: string): Unavailable {
  return { state: 'unavailable', why, ...(remedy !== undefined && { remedy }) }
}

/** Bubblewrap's own words, and the kernel's, for what it could not do. */
const KERNEL_LACKS = /kernel does not support/
const NOT_PERMITTED = /No permissions|Permission denied|not permitted|namespaces exceeded|No space left on device/

/** What helps where a layer was tried and did not work, by the error; undefined: what helps in general. Pure. */
export function remedyFor(name: LayerName, error: string): string | undefined {
  if (!BUBBLEWRAP_LAYERS.has(name)) return undefined
  if (KERNEL_LACKS.test(error)) return 'The kernel lacks it: run one with user namespaces.'
  if (NOT_PERMITTED.test(error)) return 'bubblewrap may not do it here: docs/sandbox.md says how to let it.'
  return 'Install bubblewrap anew: apt install --reinstall bubblewrap. docs/sandbox.md says what else it needs.'
}
