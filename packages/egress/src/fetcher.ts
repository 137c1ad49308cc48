import { monotonicClock, type FetchResult } from '@carpool/core'
import { createAddressPolicy, createOwnAddresses } from './address-policy.ts'
import { ConnectionPool } from './connection-pool.ts'
import { ConnectionSlots } from './connection-slots.ts'
import { exchange, type HopResponse } from './exchange.ts'
import { describeFailure, failure } from './failure.ts'
import { createGuardedConnector } from './guarded-connector.ts'
import { firstHop, parseFetchHead, redirectedHop, redirectLocation, type Hop } from './hop.ts'
import { isListed } from './host-list.ts'
import { affordableConnections, DEFAULT_LIMITS, type EgressLimits } from './limits.ts'
import type { ByteTally, EgressPolicy, EgressReading, EgressRequest, EgressResult } from './messages.ts'
import { createResolver, type Resolve } from './resolver.ts'
import { OpenFetches, SharedPool, type FetchLease } from './shared-pool.ts'

export interface FetcherOptions extends EgressPolicy {
  /** Gives the addresses of a host name. Default: hosts file and DNS. */
  readonly resolve?: Resolve
}

/** Fetches for functions, under policy. It runs in the egress thread; `Egress` is what the server sees of it. */
export interface Fetcher {
  /**
   * Never rejects.
   * @param ending ends the fetch when it is aborted, with what {@link failure} makes as the reason
   */
  fetch(request: EgressRequest, ending: AbortController): Promise<Omit<EgressResult, 'result'> & { readonly result: FetchResult }>
  readonly reading: EgressReading
}

const NO_BODY = new Uint8Array()
/** Of the host in a message. */
const MAX_SHOWN_HOST_LENGTH = 260

/** @throws CarpoolError `invalid-setting` if a range of `allow` or `deny` is none */
export function createFetcher({
  allow = [],
  deny = [],
  limits: given = {},
  resolve = createResolver(),
}: FetcherOptions): Fetcher {
  const wanted = { ...DEFAULT_LIMITS, ...given }
  const limits = { ...wanted, maxConnections: affordableConnections(wanted.maxConnections) }
  const policy = createAddressPolicy({ allow, deny, isOwn: createOwnAddresses(monotonicClock) })
  const connect = createGuardedConnector({ policy, connectTimeoutMs: limits.connectTimeoutMs, resolve })
  const pool = new ConnectionPool({ connect, ...limits })
  const slots = new ConnectionSlots(limits)
  const memory = new SharedPool(limits.maxMemoryBytes)
  const open = new OpenFetches(limits, memory)

  const fetch: Fetcher['fetch'] = async (request, ending) => {
    const own = { ...limits, totalTimeoutMs: Math.min(limits.totalTimeoutMs, request.timeoutMs ?? Number.POSITIVE_INFINITY) }
    const tally: ByteTally = { bytesOut: 0, bytesIn: 0 }
    const progress: Progress = { host: '', isWaiting: false }
    const timer = setTimeout(() => ending.abort(failure(progress.isWaiting ? 'wait-timed-out' : 'timed-out')), own.totalTimeoutMs)
    const lease = open.begin(request)
    try {
      ending.signal.throwIfAborted()
      if (lease === undefined) throw failure('invocation-full')
      if (!lease.grow(request.head.length * 2 + request.body.length)) throw failure('memory-full')
      const { body, ...result } = await follow({ request, limits: own, tally, lease, signal: ending.signal, progress })
      return { result, body, end: 'ok', ...tally }
    } catch (cause) {
      const { end, message } = describeFailure(cause, progress.host, own)
      return { result: { ok: false, message }, body: NO_BODY, end, ...tally }
    } finally {
      clearTimeout(timer)
      lease?.release()
    }
  }

  async function follow(fetch: RunningFetch): Promise<Extract<FetchResult, { ok: true }> & { readonly body: Uint8Array }> {
    const { request, limits, progress } = fetch
    const { redirect, ...head } = parseFetchHead(request.head, limits.maxRequestHeadLength)
    const isFollowed = (status: number, headers: HopResponse['headers']): boolean =>
      redirect !== 'manual' && redirectLocation(status, headers) !== undefined
    let hop = firstHop({ ...head, redirect }, request.body, limits)
    for (let redirects = 0; ; redirects += 1) {
      progress.host = hop.url.host.slice(0, MAX_SHOWN_HOST_LENGTH)
      if (request.hosts !== undefined && !isListed(request.hosts, hop.url)) throw failure('host-not-listed')
      const { status, statusText, headers, body } = await carryOut(hop, fetch, (...response) => !isFollowed(...response))
      const location = redirect === 'manual' ? undefined : redirectLocation(status, headers)
      if (location === undefined) {
        const url = hop.url.href.slice(0, hop.url.href.length - hop.url.hash.length)
        return { ok: true, status, statusText, url, redirected: redirects > 0, headers, body }
      }
      if (redirect === 'error') throw failure('redirect-refused')
      if (redirects === limits.maxRedirects) throw failure('too-many-redirects')
      hop = redirectedHop(hop, status, location)
    }
  }

  async function carryOut(
    hop: Hop,
    { request, limits, tally, lease, signal, progress }: RunningFetch,
    wantsBody: (status: number, headers: HopResponse['headers']) => boolean,
  ): Promise<HopResponse> {
    const key = { functionName: request.functionName, owner: request.owner, origin: hop.url.origin }
    progress.isWaiting = true
    const slot = await slots.take(key, signal)
    progress.isWaiting = false
    const connection = pool.acquire(key)
    let isReusable = false
    try {
      // They go along at every hop, also to another origin: a redirect must be no way around the count of hops.
      const headers = [...hop.headers, ...(request.carpoolHeaders ?? [])]
      const response = await exchange(connection, { ...hop, headers }, { limits, lease, tally, signal, wantsBody })
      isReusable = response.isWhole
      return response
    } finally {
      if (isReusable) {
        pool.release(connection, key, () => slot.release())
      } else {
        pool.discard(connection)
        slot.release()
      }
    }
  }

  return {
    fetch,
    get reading() {
      return { open: open.count, waiting: slots.waiting, connections: pool.size, memoryBytes: memory.used }
    },
  }
}

/** For the message if it fails. */
interface Progress {
  host: string
  isWaiting: boolean
}

interface RunningFetch {
  readonly request: EgressRequest
  readonly limits: EgressLimits
  readonly tally: ByteTally
  readonly lease: FetchLease
  readonly signal: AbortSignal
  readonly progress: Progress
}
