import { openFileLimit } from '@carpool/core/open-file-limit'

/** Share of the files that a process may have open which connections of clients may take; functions' fetches have 0.25, hosts and the ledger the rest. */
const CONNECTION_SHARE = 0.65

/**
 * How many connections there may be: no more than the files that this process may have open allow. A server that can open none any more
 * could start no host and write no record.
 */
export function connectionLimit(maxConnections: number, maxOpenFiles: number = openFileLimit()): number {
  return Math.max(1, Math.min(maxConnections, Math.floor(maxOpenFiles * CONNECTION_SHARE)))
}
