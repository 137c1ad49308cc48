import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { contentOf, killNow } from './processes.ts'

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
  /** Whether the system has ended a process of it because it had no memory left. To be called before it is removed. */
  hasRunOut(): boolean
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

/** Where the system counts what it has ended for want of memory: version 2 and 1. */
const OOM_FILES = ['memory.events', 'memory.oom_control']
const OOM_KILL = /^oom_kill [1-9]/m

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
  const found = ownGroups(contentOf('/proc/self/cgroup'), contentOf('/proc/self/mountinfo'), (folder) =>
    contentOf(join(folder, 'cgroup.controllers')),
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
  const hasRunOut = (): boolean => {
    const folder = folders.get('memory')
    return folder !== undefined && OOM_FILES.some((file) => OOM_KILL.test(contentOf(join(folder, file))))
  }
  return { folders, descriptors, hasRunOut, close, remove: () => distinct.forEach((folder) => remove(folder, REMOVE_RETRIES)) }
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
  for (const pid of contentOf(join(folder, 'cgroup.procs')).split('\n').map(Number)) {
    // The kernel says 0 for a process that cannot be seen from here; to signal that would be to signal ourselves.
    if (pid > 1) killNow(pid)
  }
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

/**
 * Removes the groups of servers that are no more, unless they have processes: ids of processes are not the same everywhere, so
 * they may be others'.
 */
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

/** Where the server goes in its own group, so that hosts may have groups beside it. */
const SERVER_GROUP = 'carpool-server'

/**
 * Makes a group of version 2 ready to be divided: a group that has processes may have no groups with limits below it (kernel
 * documentation, "No Internal Process Constraint"), so the server moves into one of its own there. It does so only if nobody
 * else is in the group: that of a terminal session, say, is not ours to divide.
 * @param folder of the group, as the system has it
 * @param controllers that are to work below it
 * @param onlyLooks changes nothing: a group that is yet to be divided is then a problem
 * @returns the group to make others in, or why there is none
 */
export function delegate(
  folder: string,
  controllers: readonly string[],
  onlyLooks = false,
): { readonly parent: string } | { readonly problem: string } {
  // It has been here before.
  const parent = basename(folder) === SERVER_GROUP ? dirname(folder) : folder
  try {
    const enabled = wordsOf(join(parent, 'cgroup.subtree_control'))
    if (controllers.every((controller) => enabled.includes(controller))) return { parent }
    const members = wordsOf(join(parent, 'cgroup.procs')).map(Number)
    // The launcher of the command stays in front of the server.
    const ours = new Set(process.connected ? [process.pid, process.ppid] : [process.pid])
    if (!members.every((member) => ours.has(member))) return { problem: 'Other processes are in the group of the server.' }
    if (onlyLooks)
      return { problem: 'The server divides its group when it starts; that was not tried, for it would change the group.' }
    mkdirSync(join(parent, SERVER_GROUP), { recursive: true })
    for (const member of members) writeFileSync(join(parent, SERVER_GROUP, 'cgroup.procs'), String(member))
    writeFileSync(join(parent, 'cgroup.subtree_control'), controllers.map((controller) => `+${controller}`).join(' '))
    return { parent }
  } catch (cause) {
    return { problem: `The group of the server cannot be divided: ${(cause as NodeJS.ErrnoException).code ?? 'it failed'}.` }
  }
}

function wordsOf(file: string): readonly string[] {
  return readFileSync(file, 'utf8').split(/\s+/).filter(Boolean)
}
