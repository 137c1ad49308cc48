import type { ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/**
 * The process that was started by others on behalf of a process, so many generations on; the last of the line that there is so far.
 * @returns its id, and whether it is the one that was asked for
 */
export function descendant(pid: number, generations: number): { readonly pid: number; readonly isIt: boolean } {
  let last = pid
  for (let generation = 0; generation < generations; generation++) {
    const [child] = childrenOf(last)
    if (child === undefined) return { pid: last, isIt: false }
    last = child
  }
  return { pid: last, isIt: true }
}

function childrenOf(pid: number): readonly number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1')
    return children.split(' ').filter(Boolean).map(Number)
  } catch {
    // It is gone, or the kernel was built without CONFIG_PROC_CHILDREN.
    return parentOf(pid) === undefined ? [] : processes().filter((candidate) => parentOf(candidate) === pid)
  }
}

function processes(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

function parentOf(pid: number): number | undefined {
  try {
    return Number(statOf(pid)[PARENT])
  } catch {
    return undefined
  }
}

/**
 * When a process was started, in clock ticks since the machine was: with its id the name of a process for good, for ids are used again.
 * @throws Error of the file system if there is no such process to be seen
 */
export function startedTicks(pid: number | 'self'): string {
  return statOf(pid)[STARTED] ?? ''
}

// Fields of /proc/<pid>/stat, counted from the third.
const PARENT = 1
const STARTED = 19

function statOf(pid: number | 'self'): readonly string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // The second, the program's name, may hold anything but ends with the last parenthesis.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** Ends what is left of the group of a process that was started as the leader of one, and listens to it no more. */
export function killGroup({ pid, stdio }: ChildProcess): void {
  // Who inherited the other end of a pipe may keep it open for as long as it likes.
  for (const stream of stdio) stream?.destroy()
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // There is nobody left in it.
  }
}
