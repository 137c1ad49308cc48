import { readFileSync } from 'node:fs'

/** Whether a process with this id runs, be it another user's. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  // A killed process keeps its id until its parent asks for its end, which the first process of a container may never do.
  return readStat(pid)?.state !== 'Z'
}

/**
 * What tells a process from a later one with the same id: its start time, in the kernel's ticks. Undefined where the system does not
 * say (it is read from `/proc`).
 */
export function startMark(pid: number): string | undefined {
  return readStat(pid)?.startTicks
}

function readStat(pid: number): { readonly state: string | undefined; readonly startTicks: string | undefined } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the command's name in brackets and may itself hold spaces and brackets; these are fields 3 and 22.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0], startTicks: fields[19] }
  } catch {
    return undefined
  }
}
