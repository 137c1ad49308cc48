import { openFileLimit } from '@carpool/core/open-file-limit'

/** Share of the files that the process may have open which connections of functions may take; clients have 0.65, hosts and the ledger the rest. */
const SHARE = 0.25

/**
 * How many connections there may be: a server that can open no file any more could take no client and write no record.
 * @param maxOpenFiles files that the process may have open. Default: what the system says; where it says nothing, any number
 */
export function affordableConnections(maxConnections: number, maxOpenFiles = openFileLimit()): number {
  return Math.max(1, Math.min(maxConnections, Math.floor(maxOpenFiles * SHARE)))
}
