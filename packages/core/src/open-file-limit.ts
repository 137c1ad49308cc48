import { readFileSync } from 'node:fs'

/** How many files, connections among them, this process may have open; Infinity where the system does not say. */
export function openFileLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? Infinity : Number(soft)
  } catch {
    return Infinity
  }
}
