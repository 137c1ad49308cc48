import { readFileSync } from 'node:fs'

/** Share of the files that a process may have open which connections of clients may take; the rest is for hosts, the ledger and fetches. */
const CONNECTION_SHARE = 0.9

/**
 * How many connections there may be: no more than the files that this process may have open allow. A server that can open none any more
 * could start no host and write no record.
 */
export function connectionLimit(maxConnections: number, maxOpenFiles: number = openFileLimit()): number {
  return Math.max(1, Math.min(maxConnections, Math.floor(maxOpenFiles * CONNECTION_SHARE)))
}

/** How many files this process may have open; Infinity where the system does not say. */
function openFileLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? Infinity : Number(soft)
  } catch {
    return Infinity
  }
}
