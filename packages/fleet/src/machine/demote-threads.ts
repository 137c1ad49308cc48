import { readdirSync } from 'node:fs'
import { constants, setPriority } from 'node:os'

/**
 * Lets all threads of a process but its first wait for those of other processes: one of them is stuck and would take a core from everybody. Without
 * effect where there is no /proc, or no leave to do so.
 */
export function demoteThreads(pid: number): void {
  try {
    for (const name of readdirSync(`/proc/${pid}/task`)) {
      const thread = Number(name)
      if (thread !== pid) setPriority(thread, constants.priority.PRIORITY_LOW)
    }
  } catch {
    // A thread, or the process, has ended meanwhile.
  }
}
