/** Calls that are due at given times, whatever became of the earlier ones. */
export interface OpenOrder {
  readonly kind: 'open'
  /** When each call is due, in ms after the beginning, in ascending order. */
  readonly dueMs: Float64Array
}

/** Clients of which each sends its next call after the answer to the one before. */
export interface ClosedOrder {
  readonly kind: 'closed'
  readonly clients: number
  /** Client n begins n times so many ms after the load. Default: 0. */
  readonly rampMs?: number
  /** Default: until they are stopped. */
  readonly durationMs?: number
  /** Calls that each client makes. Default: without limit. */
  readonly callsEach?: number
  /** How long a client waits between an answer and its next call, in ms. Default: 0. */
  readonly pauseMs?: number
  /** A client that is refused waits as long as `Retry-After` says; else it calls again like after any answer. */
  readonly heedsRetryAfter?: boolean
  /** A client whose connection the server closes, after an answer or between two calls, stops; else it opens another one. */
  readonly endsWithConnection?: boolean
}

/** What a load generator is to do. */
export interface LoadOrder {
  /** Address of the data plane. */
  readonly origin: string
  /** Open: call n goes to path n, over and over. Closed: client n calls path n, over and over. */
  readonly paths: readonly string[]
  /** Default: GET. A POST has an empty body. */
  readonly method?: 'GET' | 'POST'
  /**
   * What a good answer on each path says, up to {@link MAX_BODY_CHARACTERS}; any other is a failure. Default: that is not
   * looked at.
   */
  readonly bodies?: readonly string[]
  readonly load: OpenOrder | ClosedOrder
  /** Connections that are opened before the load begins. A closed load opens one for each client. Default: 0. */
  readonly openConnections?: number
  /** Most connections at the same time; calls beyond wait, and count that as their latency. Default: 12,000. */
  readonly maxConnections?: number
  /** A client that has no answer after so many ms closes its connection and leaves. Default: it waits. */
  readonly leaveAfterMs?: number
  /** Asks the system to run this generator before others: for the one whose latencies are to be those of the server alone. */
  readonly takesPrecedence?: boolean
  /** Has each call say its id, so that it can be found in the ledger. */
  readonly keepsIds?: boolean
}

/** What every call of a load has in common. */
export type CallOrder = Pick<LoadOrder, 'paths' | 'method' | 'bodies' | 'leaveAfterMs' | 'keepsIds'>

/** As much of an answer's body is looked at. */
export const MAX_BODY_CHARACTERS = 256

/** One call. Times are in ms of the epoch with fractions, so that they can be set against those of other processes. */
export interface Call {
  /** Index of its path in the order. */
  readonly path: number
  /** When it was due; in a closed load when it was sent. */
  readonly dueMs: number
  /** When its request was written. */
  readonly sentMs: number
  /** Last byte of the answer, or when the client left or the connection broke. */
  readonly endedMs: number
  /** 0: none was given. */
  readonly status: number
  /** The code of Carpool's own errors, from `x-carpool-error`. */
  readonly code?: string
  readonly retryAfterSeconds?: number
  /** From `x-carpool-invocation`; only if the order wants it. */
  readonly id?: string
  /** Why there is no answer, or none that counts: `left`, the code of a broken connection, or `wrong answer`. */
  readonly failure?: string
}

export interface LoadResult {
  readonly calls: readonly Call[]
  /** When the load began, in ms of the epoch. */
  readonly beganMs: number
  readonly endedMs: number
  /** How late the latest call was begun after it was due, in ms: a large value says that the generator was the bottleneck. */
  readonly latestStartMs: number
  readonly connectionsOpened: number
  /** CPU of the generator while the load ran, in cores: near 1 it set the pace itself. */
  readonly generatorCores: number
}
