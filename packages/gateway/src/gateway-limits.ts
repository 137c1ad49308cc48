import { openFileLimit } from '@carpool/core/open-file-limit'

/** What a client may ask of the gateway. Each is a setting of the server, with the same name. */
export interface GatewayLimits {
  /** Largest request body, in bytes. */
  readonly maxBodyBytes: number
  /** Most bytes of a request's first line and headers together. */
  readonly maxHeaderBytes: number
  /** Most headers of a request. */
  readonly maxHeaders: number
  /** Longest request target, in bytes. */
  readonly maxUrlBytes: number
  /** Longest time in which first line and headers may arrive, in ms. */
  readonly headerTimeoutMs: number
  /** Time in which a body must arrive, in ms; each byte that has come adds its share of a second. */
  readonly bodyTimeoutMs: number
  /** How many bytes of a body add a second to its time. */
  readonly bodyBytesPerSecond: number
  /** Longest time in which a client may take nothing of an answer that waits for it, in ms. */
  readonly answerTimeoutMs: number
  /** Most connections at the same time. */
  readonly maxConnections: number
  /** Most connections of one address at the same time; 0: no limit of its own. */
  readonly addressConnections: number
  /** Most bytes of request bodies, and of answers that clients have not taken, in memory at the same time. */
  readonly maxBufferedBytes: number
}

/**
 * Shares of the process's open files that connections of clients may take; functions' fetches have 0.25, hosts and the ledger the
 * rest.
 */
const CONNECTION_SHARES = { dataPlane: 0.65, controlPlane: 0.04 }

/**
 * How many connections there may be: no more than the open-file limit of this process allows. A server that can open no file any
 * more can start no host and write no record.
 */
export function connectionLimit(
  plane: keyof typeof CONNECTION_SHARES,
  maxConnections: number,
  maxOpenFiles: number = openFileLimit(),
): number {
  return Math.max(1, Math.min(maxConnections, Math.floor(maxOpenFiles * CONNECTION_SHARES[plane])))
}
