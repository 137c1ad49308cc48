import { readFileSync } from 'node:fs'

/** Share of the files that the process may have open which connections of functions may take; the rest is for clients, hosts and the ledger. */
const SHARE = 0.25

/**
 * How many connections there may be: a server that can open no file any more could take no client and write no record.
 * @param maxOpenFiles files that the process may have open. Default: what the system says; where it says nothing, any number
 */
export function affordableConnections(maxConnections: number, maxOpenFiles = openFileLimit()): number {
  return Math.max(1, Math.min(maxConnections, Math.floor(maxOpenFiles * SHARE)))
}

function openFileLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
