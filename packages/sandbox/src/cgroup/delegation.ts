import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** Where the server goes in its own group, so that hosts may have groups beside it. */
const SERVER_GROUP = 'carpool-server'

/**
 * Makes a group of version 2 ready to be divided: a group that has processes may have no groups with limits below it (kernel documentation,
 * "No Internal Process Constraint"), so the server moves into one of its own there. It does so only if nobody else is in the group: that of a
 * terminal session, say, is not ours to divide.
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
