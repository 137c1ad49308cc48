import { readFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { join } from 'node:path'

export interface MachineLoad {
  /** Cores that this process and its children may use; a fraction where a control group says so. */
  readonly cores: number
  /** Of these, the ones that are not free, whoever uses them, over the last second or so. */
  readonly busyCores: number
  /** Memory that can still be had without swapping, in bytes; by the control group's limit where there is one. */
  readonly freeBytes: number
}

interface Reading {
  readonly atMs: number
  readonly busyMs: number
  readonly quotaUsedUs: number | undefined
}

/** Shortest time that a load is measured over, in ms: the system counts in steps of 10 ms for each core. */
const SPAN_MS = 1_000

/** The part of the machine that this process has: by its CPU affinity and its control groups. */
export class Machine {
  readonly #allowed: ReadonlySet<number> | undefined
  readonly #quota: CpuQuota | undefined
  readonly #readings: Reading[] = []

  constructor(read: ReadSystemFile = readSystemFile) {
    this.#allowed = allowedCpus(read('/proc/self/status'))
    this.#quota = findCpuQuota(read)
  }

  get cores(): number {
    return Math.min(this.#cpus, availableParallelism(), this.#quota?.cores ?? Number.POSITIVE_INFINITY)
  }

  /** Whole cores, at least one: as many hosts make sense. */
  get wholeCores(): number {
    return Math.max(1, Math.floor(this.cores))
  }

  /** Called a few times a second: the load is that of the time since the oldest reading kept. */
  load(nowMs: number): MachineLoad {
    const now: Reading = { atMs: nowMs, busyMs: busyMs(this.#allowed), quotaUsedUs: this.#quota?.usedUs() }
    const readings = this.#readings
    readings.push(now)
    while (readings.length > 2 && nowMs - readings[1]!.atMs >= SPAN_MS) readings.shift()
    const before = readings[0]!
    const spanMs = Math.max(nowMs - before.atMs, 1)
    const free = this.#cpus - (now.busyMs - before.busyMs) / spanMs
    const freeOfQuota =
      this.#quota === undefined || now.quotaUsedUs === undefined || before.quotaUsedUs === undefined
        ? Number.POSITIVE_INFINITY
        : this.#quota.cores - (now.quotaUsedUs - before.quotaUsedUs) / 1000 / spanMs
    const busyCores = this.cores - Math.min(free, freeOfQuota)
    return { cores: this.cores, busyCores: Math.min(Math.max(0, busyCores), this.cores), freeBytes: process.availableMemory() }
  }

  /** CPUs that this process may run on, shared with whoever else may. */
  get #cpus(): number {
    return this.#allowed?.size ?? cpus().length
  }
}

/** CPU time that was not idle, of the CPUs that this process may use, in ms. */
function busyMs(allowed: ReadonlySet<number> | undefined): number {
  let sum = 0
  for (const [index, { times }] of cpus().entries()) {
    if (allowed === undefined || allowed.has(index)) sum += times.user + times.nice + times.sys + times.irq
  }
  return sum
}

/** @param status of a process, as the system has it under /proc */
function allowedCpus(status: string | undefined): ReadonlySet<number> | undefined {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status ?? '')?.[1]
  if (list === undefined) return undefined
  const allowed = new Set<number>()
  for (const range of list.split(',')) {
    const [first = Number.NaN, last = first] = range.split('-').map(Number)
    for (let cpu = first; cpu <= last; cpu++) allowed.add(cpu)
  }
  return allowed.size === 0 ? undefined : allowed
}

/** Reads a file of the system; undefined if there is none. Tests give a folder in its place. */
export type ReadSystemFile = (path: string) => string | undefined

/** A limit on CPU time that holds for this process, together with all others of its control group. */
export interface CpuQuota {
  readonly cores: number
  /** CPU time that the group has used since it was made, in µs; undefined if it is not counted. */
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
 * The tightest CPU quota of the control groups that this process is in; undefined if there is none. Node.js itself reads them
 * only in part: `availableParallelism` knew nothing of a quota of version 1, and it rounds.
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
