import { MAX_FETCHES_PER_INVOCATION } from '@carpool/core'
import { openFileLimit } from '@carpool/core/open-file-limit'

/** What fetches of functions may take: together, what the outside can cost the server. */
export interface EgressLimits {
  /** Largest request body. Default: 10 MiB. */
  readonly maxRequestBytes: number
  /** Longest head of a request, as its JSON: in UTF-16 units. Default: 65536, several times what servers take. */
  readonly maxRequestHeadLength: number
  /** Largest response body, as it is sent and once it is decompressed. Default: 10 MiB. */
  readonly maxResponseBytes: number
  /** Names and values of a response's headers together, and of its trailers. Default: 32768. */
  readonly maxHeaderBytes: number
  /** Headers of one response. Default: 256. */
  readonly maxHeaders: number
  /** Interim (1xx) responses before the real one. Default: 16. */
  readonly maxInterimResponses: number
  /** What a response may be besides its body: heads, sizes and extensions of chunks, trailers. Default: 1 MiB. */
  readonly maxFramingBytes: number
  /** Content codings that a response may have one on top of the other. Default: 5. */
  readonly maxCodings: number
  /** Redirects that a fetch follows. Default: 5. */
  readonly maxRedirects: number
  /** Longest time for a fetch with all its redirects and waits; a fetch may have less. Default: 30000. */
  readonly totalTimeoutMs: number
  /** Longest time for a connection: the name is looked up, and TLS agreed on. Default: 5000. */
  readonly connectTimeoutMs: number
  /**
   * What a peer may send until TLS is agreed on: its certificates, above all, and each may cost 2 ms of CPU for every KiB.
   * Default: 32768, several times what servers need.
   */
  readonly maxHandshakeBytes: number
  /** Longest time for the head of a response from its first byte on. Default: 10000. */
  readonly headTimeoutMs: number
  /**
   * Connections at the same time. A function gets at most half of what others leave; further fetches of it wait in its queue.
   * Default: 10000, and at most a quarter of the files that the process may have open.
   */
  readonly maxConnections: number
  /** Connections to one origin at the same time, shared out in the same way. Default: 10000. */
  readonly maxConnectionsPerOrigin: number
  /** Fetches of one function that wait for a connection. Default: 10000. */
  readonly maxWaitingPerFunction: number
  /** Fetches of one invocation that are open or wait. Default: 1000. */
  readonly maxFetchesPerInvocation: number
  /** Sockets of one function that are open or wait, all its calls together. Default: 1000. */
  readonly maxSocketsPerFunction: number
  /** Memory for requests and responses of all fetches, shared out in the same way as connections. Default: 256 MiB. */
  readonly maxMemoryBytes: number
}

export const DEFAULT_LIMITS: EgressLimits = {
  maxRequestBytes: 10 * 1024 * 1024,
  maxRequestHeadLength: 64 * 1024,
  maxResponseBytes: 10 * 1024 * 1024,
  maxHeaderBytes: 32 * 1024,
  maxHeaders: 256,
  maxInterimResponses: 16,
  maxFramingBytes: 1024 * 1024,
  maxCodings: 5,
  maxRedirects: 5,
  totalTimeoutMs: 30_000,
  connectTimeoutMs: 5_000,
  maxHandshakeBytes: 32 * 1024,
  headTimeoutMs: 10_000,
  maxConnections: 10_000,
  maxConnectionsPerOrigin: 10_000,
  maxWaitingPerFunction: 10_000,
  maxFetchesPerInvocation: MAX_FETCHES_PER_INVOCATION,
  maxSocketsPerFunction: 1_000,
  maxMemoryBytes: 256 * 1024 * 1024,
}

/**
 * Share of the file limit of the process that connections of functions may take; clients have 0.65, hosts and the ledger the
 * rest.
 */
const SHARE = 0.25

/**
 * How many connections there may be: a server at its file limit could take no client and write no record.
 * @param maxOpenFiles file limit of the process. Default: that of the system, if it has one
 */
export function affordableConnections(maxConnections: number, maxOpenFiles = openFileLimit()): number {
  return Math.max(1, Math.min(maxConnections, Math.floor(maxOpenFiles * SHARE)))
}
