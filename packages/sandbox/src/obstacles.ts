import type { CageTools } from './cage-plan.ts'
import type { Controller } from './cgroup/own-groups.ts'
import type { ToolProblem } from './bubblewrap-problem.ts'
import { BUBBLEWRAP_LAYERS, LAYER_NAMES, LAYERS, type LayerName } from './layers.ts'

/** Why a layer is not even tried. */
export interface Obstacle {
  readonly state: 'off' | 'unavailable'
  readonly why: string
  /** What helps, in a sentence; absent: what helps in general. */
  readonly remedy?: string
}

/** What is known of the machine and the settings before anything is tried. */
export interface Surroundings {
  readonly isOff: boolean
  readonly platform: NodeJS.Platform
  /** Those that are sound. */
  readonly tools: CageTools
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

/** Pure. */
export function obstacles(surroundings: Surroundings): ReadonlyMap<LayerName, Obstacle> {
  const found = new Map<LayerName, Obstacle>()
  for (const name of LAYER_NAMES) {
    const obstacle =
      surroundings.isOff && !ALWAYS.has(name)
        ? off('The sandbox is switched off.', 'Set sandbox to auto or require.')
        : obstacleOf(name, surroundings)
    if (obstacle !== undefined) found.set(name, obstacle)
  }
  return found
}

function obstacleOf(name: LayerName, { platform, tools, ...rest }: Surroundings): Obstacle | undefined {
  const { bubblewrapProblem, serverUid, hostUid, unreadable, hasFilter, missingGroups } = rest
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

function off(why: string, remedy: string): Obstacle {
  return { state: 'off', why, remedy }
}

function unavailable(why: string, remedy?: string): Obstacle {
  return { state: 'unavailable', why, ...(remedy !== undefined && { remedy }) }
}
