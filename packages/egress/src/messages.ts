import type { HeaderList } from '@carpool/core'
import type { EgressLimits } from './limits.ts'
import type { FetchVerdict } from './failure.ts'

/** A fetch of a function. What is in `head` and `body` comes from user code; the rest is the server's word. */
export interface EgressRequest {
  /** JSON of the core's FetchHead, as the host sent it. */
  readonly head: string
  /** Empty: none. Its memory goes over to the egress, so nobody else may use it. */
  readonly body: Uint8Array<ArrayBuffer>
  /** Whose fetch it is: shares of connections and memory go by both. */
  readonly functionName: string
  readonly owner: string
  /** Absent: nobody waits for it. */
  readonly invocationId?: string
  /** Hosts that the function may fetch from, as `checkHostList` writes them. Absent: all that the server permits. */
  readonly hosts?: readonly string[]
  /** Longest time for the fetch, below that of the server. */
  readonly timeoutMs?: number
  /** Added to the request at every hop, also to another origin; so they hold nothing that is secret. */
  readonly carpoolHeaders?: HeaderList
}

export interface EgressResult {
  /** JSON of the core's FetchResult. */
  readonly result: string
  /** Body of the response, decompressed. */
  readonly body: Uint8Array
  readonly verdict: FetchVerdict
  /** Bodies of requests that were sent, of all hops, also if the fetch failed. */
  readonly bytesOut: number
  /** Bodies of responses as they came, compressed or not, of all hops, as far as they were read. */
  readonly bytesIn: number
}

/** What the egress holds at this moment. */
export interface EgressReading {
  /** Fetches that have begun and not ended. */
  readonly open: number
  /** Of these, those that wait for a connection. */
  readonly waiting: number
  /** Connections, used or idle. */
  readonly connections: number
  /** Of requests and responses. */
  readonly memoryBytes: number
}

/** What the thread is started with. */
export interface ThreadStart {
  readonly allow: readonly string[]
  readonly deny: readonly string[]
  readonly limits: Partial<EgressLimits>
}

export type ToThread =
  | { readonly kind: 'fetch'; readonly number: number; readonly request: EgressRequest }
  | { readonly kind: 'stop'; readonly number: number }
  /** Answered by a reading. */
  | { readonly kind: 'ping' }

export type FromThread =
  | { readonly kind: 'settled'; readonly number: number; readonly settled: EgressResult }
  | { readonly kind: 'reading'; readonly reading: EgressReading }
