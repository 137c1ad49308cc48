import type { CageTools } from './cage-plan.ts'
import type { Controller } from './cgroup/own-groups.ts'
import { BUBBLEWRAP_LAYERS, LAYER_NAMES, type LayerName } from './layers.ts'

/** Why a layer is not even tried. */
export interface Obstacle {
  readonly state: 'off' | 'unavailable'
  readonly why: string
}

/** What is known of the machine and the settings before anything is tried. */
export interface Surroundings {
  readonly isOff: boolean
  readonly platform: NodeJS.Platform
  readonly tools: CageTools
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
      surroundings.isOff && !ALWAYS.has(name) ? off('The sandbox is switched off.') : obstacleOf(name, surroundings)
    if (obstacle !== undefined) found.set(name, obstacle)
  }
  return found
}

function obstacleOf(name: LayerName, { platform, tools, ...rest }: Surroundings): Obstacle | undefined {
  const { serverUid, hostUid, unreadable, hasFilter, missingGroups } = rest
  if (name === 'permission' || name === 'inheritance') return undefined
  if (name === 'rlimits') return tools.sh === undefined ? unavailable('There is no shell.') : undefined
  if (name === 'user') {
    if (hostUid === 0) return off('hostUid is 0, so hosts run as the user of the server.')
    if (serverUid !== 0) return unavailable('The server is not root, so hosts run as its user.')
    return unreadable === undefined ? undefined : unavailable(`User ${hostUid} may not read or enter ${unreadable}.`)
  }
  if (platform !== 'linux') return unavailable('Only Linux has it.')
  if (name === 'cgroup-memory' || name === 'cgroup-tasks') {
    if (tools.sh === undefined) return unavailable('There is no shell.')
    const missing = missingGroups.get(name === 'cgroup-memory' ? 'memory' : 'pids')
    return missing === undefined ? undefined : unavailable(missing)
  }
  if (name === 'no-new-privileges' && tools.setpriv !== undefined) return undefined
  if (tools.bubblewrap === undefined) {
    return unavailable(
      BUBBLEWRAP_LAYERS.has(name) ? 'Bubblewrap is not installed.' : 'Neither bubblewrap nor setpriv is installed.',
    )
  }
  return name === 'seccomp' && !hasFilter ? unavailable('There is no filter for this architecture.') : undefined
}

function off(why: string): Obstacle {
  return { state: 'off', why }
}

function unavailable(why: string): Obstacle {
  return { state: 'unavailable', why }
}
