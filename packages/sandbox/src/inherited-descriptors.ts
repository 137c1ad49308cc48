import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Linux' value, in octal as in /proc. */
const CLOSE_ON_EXEC = 0o2_000_000
const FIRST_AFTER_STANDARD = 3

/**
 * Descriptors that programs started by this process would have open as well. Node.js opens all of its own so that they are closed, and sees to
 * those with low numbers that it has inherited; others are left. The lowest comes first. Empty where there is no /proc.
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

/** What a process gets as its descriptors, by number. From 3 on, Node.js leaves those that it is to ignore as they are: the process inherits them. */
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

function isInheritable(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1]
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0
  } catch {
    // The one that the folder itself was read with.
    return false
  }
}

/**
 * What the descriptors of this process are open on, as the kernel names it: a socket, a pipe, a file. Each is one thing in the whole machine,
 * except for those that every process has its own of.
 */
export function openThings(): ReadonlySet<string> {
  const things = new Set<string>()
  try {
    for (const fd of readdirSync('/proc/self/fd')) {
      try {
        const thing = readlinkSync(`/proc/self/fd/${fd}`)
        if (!thing.startsWith('anon_inode:') && thing !== '/dev/null') things.add(thing)
      } catch {
        // The one that the folder itself was read with.
      }
    }
  } catch {
    // No /proc.
  }
  return things
}
