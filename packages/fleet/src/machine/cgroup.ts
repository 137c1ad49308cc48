import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Reads a file of the system; undefined if there is none. Tests give a folder in its place. */
export type ReadSystemFile = (path: string) => string | undefined

/** A limit on CPU time that holds for this process, together with all others of its control group. */
export interface CpuQuota {
  readonly cores: number
  /** CPU time that the group has used since it was made, in µs; undefined if it does not say. */
  usedUs(): number | undefined
}

/** Where a control group's files are: version 2 has one hierarchy, version 1 one for each controller. */
interface Hierarchy {
  readonly mount: string
  /** Of the process's group in it, from its root. */
  readonly path: string
}

export const readSystemFile: ReadSystemFile = (path) => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/**
 * The tightest CPU quota of the control groups that this process is in; undefined if there is none. Node.js itself reads them only in part:
 * `availableParallelism` knew nothing of a quota of version 1, and it rounds.
 */
export function findCpuQuota(read: ReadSystemFile = readSystemFile): CpuQuota | undefined {
  const groups = read('/proc/self/cgroup') ?? ''
  const mounts = read('/proc/self/mountinfo') ?? ''
  const unified = hierarchyOf(groups, mounts, '')
  const cpu = hierarchyOf(groups, mounts, 'cpu')
  const accounting = hierarchyOf(groups, mounts, 'cpuacct')
  const quotas = [
    ...foldersOf(unified).map((folder) => quotaOfVersion2(folder, read)),
    ...foldersOf(cpu).map((folder) => quotaOfVersion1(folder, accounting, cpu, read)),
  ].filter((quota) => quota !== undefined)
  return quotas.reduce<CpuQuota | undefined>((least, quota) => (least && least.cores <= quota.cores ? least : quota), undefined)
}

function quotaOfVersion2(folder: string, read: ReadSystemFile): CpuQuota | undefined {
  const [quotaUs, periodUs] = (read(join(folder, 'cpu.max')) ?? '').trim().split(' ').map(Number)
  const usedUs = (): number | undefined => numberIn(/^usage_usec (\d+)$/m.exec(read(join(folder, 'cpu.stat')) ?? '')?.[1])
  return quotaOf(quotaUs, periodUs, usedUs)
}

function quotaOfVersion1(
  folder: string,
  accounting: Hierarchy | undefined,
  cpu: Hierarchy | undefined,
  read: ReadSystemFile,
): CpuQuota | undefined {
  const quotaUs = numberIn(read(join(folder, 'cpu.cfs_quota_us')))
  const periodUs = numberIn(read(join(folder, 'cpu.cfs_period_us')))
  const accountingFolder = accounting && cpu ? folder.replace(cpu.mount, accounting.mount) : folder
  const usedUs = (): number | undefined => {
    const usedNs = numberIn(read(join(accountingFolder, 'cpuacct.usage')))
    return usedNs === undefined ? undefined : usedNs / 1000
  }
  return quotaOf(quotaUs, periodUs, usedUs)
}

function quotaOf(quotaUs: number | undefined, periodUs: number | undefined, usedUs: CpuQuota['usedUs']): CpuQuota | undefined {
  // No quota is "max" in version 2 and -1 in version 1.
  const isQuota = quotaUs !== undefined && periodUs !== undefined && quotaUs > 0 && periodUs > 0
  return isQuota ? { cores: quotaUs / periodUs, usedUs } : undefined
}

/** @param controller empty for version 2 */
function hierarchyOf(groups: string, mounts: string, controller: string): Hierarchy | undefined {
  const group = groups.split('\n').find((line) => line.split(':')[1]?.split(',').includes(controller))
  if (group === undefined) return undefined
  const path = group.slice(group.indexOf(':', group.indexOf(':') + 1) + 1)
  for (const line of mounts.split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const [type, , options = ''] = after.split(' ')
    const isIt = controller === '' ? type === 'cgroup2' : type === 'cgroup' && options.split(',').includes(controller)
    const [, , , root = '/', mount] = before.split(' ')
    if (!isIt || mount === undefined) continue
    // In a container the mount shows the hierarchy from the container's own group down.
    return { mount, path: path.startsWith(root) && root !== '/' ? path.slice(root.length) : path }
  }
  return undefined
}

/** The folders of a group and of all groups around it. */
function foldersOf(hierarchy: Hierarchy | undefined): string[] {
  if (hierarchy === undefined) return []
  const names = hierarchy.path.split('/').filter((name) => name !== '' && name !== '..')
  return Array.from({ length: names.length + 1 }, (_, count) => join(hierarchy.mount, ...names.slice(0, count)))
}

function numberIn(text: string | undefined): number | undefined {
  const value = text === undefined || text.trim() === '' ? Number.NaN : Number(text)
  return Number.isFinite(value) ? value : undefined
}
