import type { ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import { startedTicks } from './probe.js'

/**
 * The process that was started by others on behalf of a process, so many generations on; the last of the line that there is so
 * far.
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
    if (contentOf(`/proc/${pid}/stat`) === '') return []
    return readdirSync('/proc')
      .map(Number)
      .filter((candidate) => parentOf(candidate) === pid)
  }
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s*(\d+)/m.exec(contentOf(`/proc/${pid}/status`))?.[1])
}

/** When a process was started, which with its id is its name for good; empty if there is no such process to be seen. */
export function startOf(pid: number | 'self'): string {
  try {
    return startedTicks(pid)
  } catch {
    return ''
  }
}

/** Ends a process at once, if it is still there. @param pid a negative one stands for a process group */
export function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It is gone.
  }
}

/** Ends what is left of the group of a process that was started as the leader of one, and reads no more of its output. */
export function killGroup({ pid, stdio }: ChildProcess): void {
  // A process that inherited the other end of a pipe may keep it open for as long as it likes.
  for (const stream of stdio) stream?.destroy()
  if (pid !== undefined) killNow(-pid)
}

/** Empty if it cannot be read. */
export function contentOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

const MAX_CHARACTERS = 300

/** The output of another program as part of a sentence: on one line, short, and without what a terminal would obey. */
export function oneLine(output: string): string {
  const text = stripVTControlCharacters(output)
    .replaceAll(/[\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu, ' ')
    .trim()
  return text.length <= MAX_CHARACTERS ? text : `${text.slice(0, MAX_CHARACTERS)} …`
}

const CLOSE_ON_EXEC = 0o2_000_000
const FIRST_AFTER_STANDARD = 3

/**
 * Descriptors that programs started by this process would have open as well, the lowest first. Node.js opens all of its own so
 * that they are closed, and sees to those with low numbers that it has inherited; others are left. Empty where there is no
 * /proc.
 */
export function inheritableDescriptors(): readonly number[] {
  try {
    return readdirSync('/proc/self/fdinfo')
      .map(Number)
      .filter((fd) => fd >= FIRST_AFTER_STANDARD && isInheritable(fd))
      .toSorted((a, b) => a - b)
  } catch {
    return []
  }
}

function isInheritable(fd: number): boolean {
  // There is none of the descriptor that the folder itself was read with.
  const flags = /^flags:\s*([0-7]+)$/m.exec(contentOf(`/proc/self/fdinfo/${fd}`))?.[1]
  return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0
}

/**
 * What a process gets as its descriptors, by number. From 3 on, Node.js leaves those that it is to ignore as they are: the
 * process inherits them.
 */
export type Stdio = Array<'ignore' | 'pipe' | number>

/**
 * Opens nothing on descriptors that programs would inherit, unless they get something else there.
 * @param nothing a descriptor that is open on /dev/null
 */
export function cover(stdio: Stdio, inherited: readonly number[], nothing: number): void {
  for (const fd of inherited) {
    if (fd < FIRST_AFTER_STANDARD) continue
    while (stdio.length <= fd) stdio.push('ignore')
    if (stdio[fd] === 'ignore') stdio[fd] = nothing
  }
}
