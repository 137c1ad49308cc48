import { readFileSync } from 'node:fs'

/** Whether a process with this id runs, be it another user's. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  // A killed process keeps its id until its parent asks for its end, which the first process of a container may never do.
  return readProcess(pid)?.state !== 'Z'
}

/**
 * What tells a process from a later one with the same id: its start time, in the kernel's ticks. Undefined where the system does
 * not say (it is read from `/proc`).
 */
export function startMark(pid: number): string | undefined {
  return readProcess(pid)?.startTicks
}

/** A process, as the system sees it. */
export interface ProcessReading {
  readonly pid: number
  /** What it calls itself, or its program; 15 bytes at most. */
  readonly name: string
  /** `Z` if it has ended and its parent has not asked for its end yet. */
  readonly state: string
  readonly parentPid: number
  /** The process group: a job of a shell is one. */
  readonly groupId: number
  /** The id of the process that leads the session. */
  readonly sessionId: number
  readonly startTicks: string
}

/** Reads a process from `/proc`; undefined if it is gone, is not for us to see, or there is no `/proc`. */
export function readProcess(pid: number): ProcessReading | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the name in brackets and may itself hold spaces and brackets; the rest is field 3 and those after it.
    const nameEnd = stat.lastIndexOf(')')
    const fields = stat.slice(nameEnd + 2).split(' ')
    const [state = '', parentPid, groupId, sessionId] = fields
    return {
      pid,
      name: stat.slice(stat.indexOf('(') + 1, nameEnd),
      state,
      parentPid: Number(parentPid),
      groupId: Number(groupId),
      sessionId: Number(sessionId),
      startTicks: fields[19] ?? '',
    }
  } catch {
    return undefined
  }
}
