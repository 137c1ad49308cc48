import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { delegate } from './delegation.ts'
import { ownGroups, type Controller } from './own-groups.ts'

/** What one host may take of the machine, by its control group. */
export interface GroupLimits {
  readonly memoryBytes: number
  /** Processes and threads. */
  readonly tasks: number
}

/** The control groups of one host. */
export interface HostGroup {
  readonly folders: ReadonlyMap<Controller, string>
  /** Open on `cgroup.procs` of each, for the process that is to join them. */
  readonly descriptors: readonly number[]
  /** The process has its own descriptors by now. */
  close(): void
  /** The host is gone. Its last processes may take a moment to be. */
  remove(): void
}

/** Control groups for hosts, and why there are none for a controller. */
export interface HostGroups {
  readonly missing: ReadonlyMap<Controller, string>
  readonly controllers: ReadonlySet<Controller>
  /** @throws Error of the file system if they cannot be made */
  open(): HostGroup
}

const REMOVE_RETRY_MS = 20
const REMOVE_RETRIES = 100
const OUR_GROUP = /^carpool-(\d+)-\d+$/

let lastNumber = 0

/**
 * Finds where groups can be made, removes what servers that were killed have left there, and tries one.
 * @param wanted the controllers to limit hosts by
 * @param onlyLooks divides no group and removes none; the one that is tried is gone afterwards
 */
export function prepareHostGroups(
  limits: GroupLimits,
  wanted: readonly Controller[] = ['memory', 'pids'],
  onlyLooks = false,
): HostGroups {
  const missing = new Map<Controller, string>()
  const parents = new Map<Controller, string>()
  const found = ownGroups(read('/proc/self/cgroup'), read('/proc/self/mountinfo'), (folder) =>
    read(join(folder, 'cgroup.controllers')),
  )
  const unified = [...found].filter(([, { version }]) => version === 2).map(([controller]) => controller)
  for (const controller of wanted) {
    const own = found.get(controller)
    const place = own?.version === 2 ? delegate(own.folder, unified, onlyLooks) : own && { parent: own.folder }
    const problem =
      place === undefined
        ? 'There is no such controller, or the server is not in a group that has it.'
        : 'problem' in place
          ? place.problem
          : trialProblem(place.parent, controller, limits, onlyLooks)
    if (problem !== undefined) missing.set(controller, problem)
    else if (place !== undefined && 'parent' in place) parents.set(controller, place.parent)
  }
  return { missing, controllers: new Set(parents.keys()), open: () => openGroup(parents, limits) }
}

function trialProblem(parent: string, controller: Controller, limits: GroupLimits, onlyLooks: boolean): string | undefined {
  try {
    if (!onlyLooks) removeStale(parent)
    const group = openGroup(new Map([[controller, parent]]), limits)
    group.close()
    group.remove()
    return undefined
  } catch (cause) {
    return `No group can be made in that of the server: ${(cause as NodeJS.ErrnoException).code ?? 'it failed'}.`
  }
}

function openGroup(parents: ReadonlyMap<Controller, string>, limits: GroupLimits): HostGroup {
  const name = `carpool-${process.pid}-${++lastNumber}`
  const folders = new Map([...parents].map(([controller, parent]) => [controller, join(parent, name)]))
  const descriptors: number[] = []
  // Of version 2 both are one.
  const distinct = [...new Set(folders.values())]
  const close = (): void => {
    for (const descriptor of descriptors.splice(0)) closeSync(descriptor)
  }
  try {
    for (const folder of distinct) mkdirSync(folder)
    for (const [controller, folder] of folders) limit(controller, folder, limits)
    for (const folder of distinct) descriptors.push(openSync(join(folder, 'cgroup.procs'), 'w'))
  } catch (cause) {
    close()
    for (const folder of distinct) remove(folder, 0)
    throw cause
  }
  return { folders, descriptors, close, remove: () => distinct.forEach((folder) => remove(folder, REMOVE_RETRIES)) }
}

function limit(controller: Controller, folder: string, { memoryBytes, tasks }: GroupLimits): void {
  if (controller === 'pids') return writeFileSync(join(folder, 'pids.max'), String(tasks))
  const files = readdirSync(folder)
  const setIfThere = (file: string, value: number): void => {
    if (files.includes(file)) writeFileSync(join(folder, file), String(value))
  }
  setIfThere('memory.max', memoryBytes)
  setIfThere('memory.limit_in_bytes', memoryBytes)
  setIfThere('memory.swap.max', 0)
  setIfThere('memory.memsw.limit_in_bytes', memoryBytes)
  // What is left of a host whose threads are ended one by one is of no use.
  setIfThere('memory.oom.group', 1)
}

/** Ends what a host has left in its group, and takes it away. */
function remove(folder: string, retries: number): void {
  if (removeEmpty(folder)) return
  for (const pid of read(join(folder, 'cgroup.procs')).split('\n').map(Number)) end(pid)
  if (retries > 0) setTimeout(() => remove(folder, retries - 1), REMOVE_RETRY_MS).unref()
}

/** @returns false if there are still processes in it */
function removeEmpty(folder: string): boolean {
  try {
    rmdirSync(folder)
    return true
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code !== 'EBUSY'
  }
}

function end(pid: number): void {
  // The kernel says 0 for a process that cannot be seen from here; to signal that would be to signal ourselves.
  if (pid <= 1) return
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It is gone.
  }
}

/** Removes the groups of servers that are no more, unless they have processes: ids of processes are not the same everywhere, so they may be others'. */
function removeStale(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = OUR_GROUP.exec(name)?.[1]
    if (pid !== undefined && !isAlive(Number(pid))) removeEmpty(join(parent, name))
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
