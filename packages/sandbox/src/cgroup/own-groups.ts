import { resolve } from 'node:path'

/** The control group of this process that has a controller, where groups for hosts may be made. */
export interface OwnGroup {
  readonly version: 1 | 2
  readonly folder: string
}

export type Controller = 'memory' | 'pids'

/**
 * Where the control groups of this process are, by controller; in version 2 it is one and the same folder. Pure.
 * @param groups /proc/self/cgroup
 * @param mounts /proc/self/mountinfo
 * @param controllers reads `cgroup.controllers` in a folder of version 2; empty if there is none
 */
export function ownGroups(
  groups: string,
  mounts: string,
  controllers: (folder: string) => string,
): ReadonlyMap<Controller, OwnGroup> {
  const found = new Map<Controller, OwnGroup>()
  for (const controller of ['memory', 'pids'] as const) {
    const legacy = folderOf(groups, mounts, controller)
    if (legacy !== undefined) {
      found.set(controller, { version: 1, folder: legacy })
      continue
    }
    const unified = folderOf(groups, mounts, '')
    if (unified !== undefined && controllers(unified).trim().split(/\s+/).includes(controller)) {
      found.set(controller, { version: 2, folder: unified })
    }
  }
  return found
}

/** @param controller empty for version 2 */
function folderOf(groups: string, mounts: string, controller: string): string | undefined {
  const line = groups.split('\n').find((one) => one.split(':')[1]?.split(',').includes(controller))
  // The path may hold colons.
  const path = line?.split(':').slice(2).join(':')
  if (path === undefined) return undefined
  for (const mount of mounts.split('\n')) {
    const [before = '', after = ''] = mount.split(' - ')
    const [type, , options = ''] = after.split(' ')
    const isIt = controller === '' ? type === 'cgroup2' : type === 'cgroup' && options.split(',').includes(controller)
    const [, , , root = '/', folder] = before.split(' ')
    if (!isIt || folder === undefined) continue
    // In a container the mount shows the hierarchy from the container's own group down.
    const isBelowRoot = root !== '/' && path.startsWith(root)
    return resolve(folder, `.${isBelowRoot ? path.slice(root.length) : path}`)
  }
  return undefined
}
