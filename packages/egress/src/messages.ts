import type { HeaderList } from '@carpool/core'
import type { FetchEnd } from './failure.ts'
import type { EgressLimits } from './limits.ts'

/** What fetches may reach and take. The thread is started with it. */
export interface EgressPolicy {
  /** Ranges in CIDR form, or addresses, that are open with all their ports although they are not public. Default: none. */
  readonly allow?: readonly string[]
  /** Ranges in CIDR form, or addresses, that are closed in any case. Default: none. */
  readonly deny?: readonly string[]
  readonly limits?: Partial<EgressLimits>
}

/** A fetch of a function. `head` and `body` come from user code; the rest from the server. */
export interface EgressRequest {
  /** JSON of the core's FetchHead, as the host sent it. */
  readonly head: string
  /** Empty: none. Its memory is transferred to the thread, so the caller must not use it any more. */
  readonly body: Uint8Array<ArrayBuffer>
  /** The body comes behind, as data of this number. */
  readonly streams?: boolean
  /** The response's body may come as data of this number, between its head and its end. */
  readonly takesStream?: boolean
  /** Whose fetch it is: shares of connections and memory go by both. */
  readonly functionName: string
  readonly owner: string
  /** Absent: background work of the function. */
  readonly invocationId?: string
  /** Hosts that the function may fetch from, as `checkHostList` writes them. Absent: all that the server permits. */
  readonly hosts?: readonly string[]
  /** Longest time for the fetch, below that of the server. */
  readonly timeoutMs?: number
  /** Added to the request at every hop, also to another origin; so they hold nothing that is secret. */
  readonly carpoolHeaders?: HeaderList
}

/** A socket of a function. `target` comes from user code; the rest from the server. */
export interface SocketRequest {
  /** JSON of the core's SocketTarget, as the host sent it. */
  readonly target: string
  /** Whose socket it is. */
  readonly functionName: string
  readonly owner: string
  /** As for a fetch. */
  readonly hosts?: readonly string[]
  /** Added to the handshake of a WebSocket. */
  readonly carpoolHeaders?: HeaderList
}

/** Some bytes of a stream, in order; see the wire's StreamData. */
export interface StreamPart {
  /** Their memory goes over to the receiver. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly end?: true
  readonly message?: 'text' | 'bytes'
  readonly more?: true
  /** With `end` of a WebSocket. */
  readonly text?: string
}

/** A direction of a stream, as whoever speaks of it sees it. */
export type StreamSide = 'sent' | 'received'

/** Bytes of bodies that have gone over connections, of all hops, also if the fetch fails. */
export interface ByteTally {
  bytesOut: number
  /** As they came, compressed or not, as far as they were read. */
  bytesIn: number
}

export interface EgressResult extends Readonly<ByteTally> {
  /** JSON of the core's FetchResult. */
  readonly result: string
  /** Body of the response, decompressed. */
  readonly body: Uint8Array
  readonly end: FetchEnd
}

/** What the egress holds at this moment. */
export interface EgressReading {
  /** Fetches that have begun and not ended. */
  readonly open: number
  /** Of these, those that wait for a connection. */
  readonly waiting: number
  /** Connections, used or idle, with those of sockets. */
  readonly connections: number
  readonly sockets: number
  /** Of requests and responses. */
  readonly memoryBytes: number
}

/** A fetch or socket has the same number on both sides. */
export type ToThread =
  | { readonly kind: 'fetch'; readonly number: number; readonly request: EgressRequest }
  | { readonly kind: 'open'; readonly number: number; readonly request: SocketRequest }
  /** JSON of the core's TlsOptions. */
  | { readonly kind: 'start-tls'; readonly number: number; readonly options: string }
  | { readonly kind: 'data'; readonly number: number; readonly part: StreamPart }
  | { readonly kind: 'credit'; readonly number: number; readonly bytes: number }
  | { readonly kind: 'abort'; readonly number: number; readonly side: StreamSide }
  | { readonly kind: 'stop'; readonly number: number }
  /** Answered by a reading. */
  | { readonly kind: 'ping' }

export type FromThread =
  | { readonly kind: 'settled'; readonly number: number; readonly settled: EgressResult }
  /** JSON of the core's FetchedHead. */
  | { readonly kind: 'head'; readonly number: number; readonly head: string }
  /** The peer takes no more of what is sent. */
  | { readonly kind: 'stopped'; readonly number: number }
  /** JSON of the core's ConnectedSocket. */
  | { readonly kind: 'connected'; readonly number: number; readonly connected: string }
  | { readonly kind: 'data'; readonly number: number; readonly part: StreamPart }
  | { readonly kind: 'credit'; readonly number: number; readonly bytes: number }
  /** JSON of the core's SocketEnd. */
  | ({ readonly kind: 'closed'; readonly number: number; readonly end: string } & Readonly<ByteTally>)
  | { readonly kind: 'reading'; readonly reading: EgressReading }

/** Sends the messages of one turn of the event loop together: each send costs more than what is in it. */
export class Outbox<Item> {
  readonly #post: (items: readonly Item[], transfers: ArrayBuffer[]) => void
  readonly #schedule: (flush: () => void) => void
  #items: Item[] = []
  #transfers: ArrayBuffer[] = []

  /**
   * @param post sends the items; the memory of `transfers` goes along
   * @param schedule calls back when all that belongs together was put
   */
  constructor(post: (items: readonly Item[], transfers: ArrayBuffer[]) => void, schedule: (flush: () => void) => void) {
    this.#post = post
    this.#schedule = schedule
  }

  /** @param body bytes that are part of the item; their memory goes over to the receiver */
  put(item: Item, body?: Uint8Array): void {
    if (this.#items.length === 0) this.#schedule(() => this.#flush())
    this.#items.push(item)
    if (body !== undefined && body.length > 0) this.#transfers.push(body.buffer as ArrayBuffer)
  }

  #flush(): void {
    const items = this.#items
    const transfers = this.#transfers
    this.#items = []
    this.#transfers = []
    this.#post(items, transfers)
  }
}
