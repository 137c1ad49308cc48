import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'

/** A share of a busy core that is a tenth of others' (Linux, sched(7): each step of niceness is a factor of 1.25). */
const LOW = 10
/** The smallest share that there is. */
const LOWEST = 19

/** Lets a process get less of a busy machine than others: what runs in it has done harm. What it starts from here on is no better off. */
export function demoteProcess(pid: number): void {
  demoteGroup(pid)
  demote(pid, LOW, () => true)
}

/**
 * The same for one in which a thread is stuck, which would take a core from everybody. Its first thread, which answers what else is under way in it, goes
 * before the others.
 */
export function demoteStuck(pid: number): void {
  demoteGroup(pid)
  demote(pid, LOWEST, (thread) => thread !== pid)
}

/** Without effect where there is no /proc, or no leave to do so; it is never taken back, which would need more rights than a server has. */
function demote(pid: number, niceness: number, isMeant: (thread: number) => boolean): void {
  for (const thread of threadsOf(pid)) {
    if (!isMeant(thread)) continue
    try {
      setPriority(thread, niceness)
    } catch {
      // It has ended meanwhile.
    }
  }
}

function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number)
  } catch {
    return []
  }
}

/** Where the system gives each session an equal share (sched(7): autogroups), as it does unless control groups do, niceness of threads only counts within it. */
function demoteGroup(pid: number): void {
  try {
    // Without a sandbox a host is of the server's own session.
    if (groupOf(pid) === groupOf('self')) return
    writeFileSync(`/proc/${pid}/autogroup`, String(LOW), { flag: 'r+' })
  } catch {
    // There are no such groups, or the process has ended.
  }
}

/** Name of the group, as in "/autogroup-123 nice 0". */
function groupOf(pid: number | 'self'): string | undefined {
  return readFileSync(`/proc/${pid}/autogroup`, 'utf8').split(' ')[0]
}
