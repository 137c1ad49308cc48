import { LIMIT_RANGES, NOBODY, ownMemoryOf, type FailedFetch, type HeaderList, type Holder, type Revision } from '@carpool/core'
import { Egress, type EgressStream } from '@carpool/egress'
import type { StreamFromHost, StreamToHost } from '@carpool/fleet'
import { NO_BODY, whole, type Fetch, type StreamData } from '@carpool/wire'
import type { Logger } from 'pino'
import type { ServerSettings } from '../settings/table.ts'
import { RelayedFetch } from './relayed-fetch.ts'
import { partOf, SocketRelay } from './socket-relay.ts'

/** Bytes of bodies that went over connections for one fetch, with its redirects. */
export interface FetchedBytes {
  readonly bytesOut: number
  /** As they came, compressed or not. */
  readonly bytesIn: number
}

/** What the relay needs of a host process. */
export interface FetchingHost {
  readonly id: number
  settleFetch(holder: Holder, fetch: number, result: string, body: Uint8Array, bytes: FetchedBytes): void
  sayOfStream(holder: Holder, message: StreamToHost, text?: string, body?: Uint8Array): void
}

/** What the relay needs to know of whose fetch it is. */
export type FetchingRevision = Pick<Revision, 'functionName' | 'owner' | 'limits' | 'egress'>

export interface EgressRelayParts {
  readonly egress: Pick<Egress, 'fetch' | 'openSocket'>
  /** The revisions that hosts may speak of. */
  readonly revisionOf: (id: string) => FetchingRevision | undefined
  /** Headers that Carpool adds to a fetch at every hop of it, to any origin. Default: none. */
  readonly headersFor?: (fetch: FetchSource) => HeaderList
  /** What went over for a fetch that the host did not wait for to its end. */
  readonly onUnclaimed?: (host: FetchingHost, revision: string, bytes: FetchedBytes) => void
  /** A socket of a function was opened, or one is closed, whether its host still wants to know or not. */
  readonly socketsChanged?: (functionName: string, change: 1 | -1) => void
}

/** What a host may do with a fetch or socket. */
type RelayedStream = Pick<EgressStream, 'send' | 'credit' | 'abort'>

/** On whose behalf a host fetches. */
type FetchSource = Pick<Fetch, 'revision' | 'id'>

/** Carries the fetches of functions from the hosts to the egress, and the results back. */
export class EgressRelay {
  readonly #parts: EgressRelayParts
  readonly #open = new WeakMap<FetchingHost, Map<number, RelayedFetch>>()
  readonly #gone = new WeakSet<FetchingHost>()
  readonly #sockets: SocketRelay

  constructor(parts: EgressRelayParts) {
    this.#parts = parts
    this.#sockets = new SocketRelay(parts)
  }

  /** Settles the fetch in the host, unless it is stopped before. */
  start(host: FetchingHost, message: Pick<Fetch, 'fetch' | 'streams'> & FetchSource, head: string, body: Uint8Array): void {
    // What a host sent can come in after its end was noticed.
    if (this.#gone.has(host)) return
    const { egress, revisionOf, headersFor, onUnclaimed } = this.#parts
    const { fetch, revision, id, streams } = message
    const whose = revisionOf(revision)
    if (whose === undefined) return host.settleFetch(NOBODY, fetch, NOT_DEPLOYED, NO_BODY, NO_BYTES)
    const open = this.#open.get(host) ?? new Map<number, RelayedFetch>()
    // A host that uses a number twice has only itself to blame, but the first fetch must not be lost sight of.
    open.get(fetch)?.stop()
    const carpoolHeaders = headersFor?.({ revision, ...(id !== undefined && { id }) })
    const relayed = new RelayedFetch(host, whose, fetch)
    relayed.stream = egress.fetch(
      {
        head,
        body: ownMemoryOf(body),
        functionName: whose.functionName,
        owner: whose.owner,
        timeoutMs: whose.limits.wallMs,
        ...(streams === true && { streams }),
        takesStream: true,
        ...(id !== undefined && { invocationId: id }),
        ...(whose.egress !== undefined && { hosts: whose.egress }),
        ...(carpoolHeaders !== undefined && { carpoolHeaders }),
      },
      ({ result, body, ...bytes }) => {
        if (relayed.isStopped) return onUnclaimed?.(host, revision, relayed.unclaimedOf(bytes))
        open.delete(fetch)
        if (!relayed.hasHead) return host.settleFetch(whose, fetch, result, body, bytes)
        const { bytesOut, bytesIn } = bytes
        host.sayOfStream(whose, { type: 'fetch-settled', fetch, bytesOut, bytesIn }, result)
      },
      relayed.events,
    )
    this.#open.set(host, open.set(fetch, relayed))
  }

  /** @param counted what of its bytes the host has counted, as it says */
  stop(host: FetchingHost, fetch: number, counted?: FetchedBytes): void {
    const open = this.#open.get(host)
    const relayed = open?.get(fetch)
    open?.delete(fetch)
    relayed?.stop(counted)
  }

  /** A fetch that is open. */
  find(host: FetchingHost, fetch: number): RelayedFetch | undefined {
    return this.#open.get(host)?.get(fetch)
  }

  /** A host says something of a socket, or of the bodies of a fetch. */
  said(host: FetchingHost, message: StreamFromHost, text: string, body: Uint8Array): void {
    if (this.#gone.has(host)) return
    switch (message.type) {
      case 'socket-open':
        return this.#sockets.open(host, message, text)
      case 'start-tls':
        return this.#sockets.find(host, message.socket)?.startTls(text)
      case 'socket-stop':
        return this.#sockets.find(host, message.socket)?.stop()
      case 'stream-data':
        return this.#streamOf(host, message)?.send(partOf(message, text, ownMemoryOf(body)))
      case 'stream-credit':
        return this.#streamOf(host, message)?.credit(whole(message.bytes))
      case 'stream-abort':
        return this.#streamOf(host, message)?.abort(message.side === 'sent' ? 'sent' : 'received')
    }
  }

  #streamOf(host: FetchingHost, { of, number }: Pick<StreamData, 'of' | 'number'>): RelayedStream | undefined {
    return of === 'socket' ? this.#sockets.find(host, number) : this.find(host, number)
  }

  /** The host is gone, or about to be ended: its fetches and sockets stop, and it starts no more. */
  stopAll(host: FetchingHost): void {
    this.#gone.add(host)
    this.#sockets.stopAll(host)
    const open = this.#open.get(host)
    if (open === undefined) return
    const streams = [...open.values()]
    open.clear()
    for (const stream of streams) stream.stop()
  }
}

const NO_BYTES: FetchedBytes = { bytesOut: 0, bytesIn: 0 }
/** The function was deleted; what was begun of it may go on, but not out. */
const NOT_DEPLOYED = JSON.stringify({ ok: false, message: 'The function is not deployed any more.' } satisfies FailedFetch)

/** What fetches for functions. @throws CarpoolError of a setting that makes no sense */
export function openEgress(settings: ServerSettings, log: Logger): Egress {
  return new Egress({
    allow: settings.allowEgress,
    deny: settings.denyEgress,
    limits: {
      totalTimeoutMs: LIMIT_RANGES.wallMs.max,
      maxRequestBytes: settings.maxBodyBytes,
      maxConnections: settings.maxEgressConnections,
      maxConnectionsPerOrigin: settings.maxEgressConnectionsPerOrigin,
      maxMemoryBytes: settings.maxEgressBufferedBytes,
    },
    onThreadLost: ({ cause, restartInMs }) =>
      log.error({ err: cause, restartInMs }, 'the thread that fetches for functions has ended; the next fetch starts another'),
  })
}
