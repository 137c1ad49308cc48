import type { FetchResult, HeaderList } from '@carpool/core'
import { exchange, type ExchangeParts, type HopResponse, type WantsBody } from './exchange.ts'
import { describeFailure, failure } from './failure.ts'
import { FetchClock } from './fetch-clock.ts'
import type { FetchStream } from './fetch-stream.ts'
import { firstHop, parseFetchHead, redirectedHop, redirectLocation, type Hop } from './hop.ts'
import { isListed } from './host-list.ts'
import type { EgressLimits } from './limits.ts'
import type { ByteTally, EgressReading, EgressRequest, EgressResult } from './messages.ts'
import { OpenFetches, type FetchLease } from './open-fetches.ts'
import { Outside, type OutsideOptions } from './outside.ts'

export type FetcherOptions = OutsideOptions

const NO_BODY = new Uint8Array()
/** Of the host in a message. */
const MAX_SHOWN_HOST_LENGTH = 260

export type FetchOutcome = Omit<EgressResult, 'result'> & { readonly result: FetchResult }

interface RunningFetch {
  readonly request: EgressRequest
  readonly limits: EgressLimits
  readonly tally: ByteTally
  readonly signal: AbortSignal
  readonly stream: FetchStream | undefined
  /** Moves the time limit on: see {@link FetchClock}. */
  readonly clock: FetchClock
  /** Of the URL that is fetched, for the message if it fails. */
  host: string
  isWaiting: boolean
}

/** Fetches for functions, under policy. It runs in the egress thread; `Egress` is what the server sees of it. */
export class Fetcher {
  readonly #outside: Outside
  readonly #limits: EgressLimits
  readonly #open: OpenFetches

  /** @throws CarpoolError `invalid-setting` if a range of `allow` or `deny` is none */
  constructor(options: FetcherOptions, outside = new Outside(options)) {
    this.#outside = outside
    this.#limits = outside.limits
    this.#open = new OpenFetches(outside.limits, outside.memory)
  }

  get reading(): EgressReading {
    const { slots, pool, sockets, memory } = this.#outside
    return { open: this.#open.count, waiting: slots.waiting, connections: pool.size + sockets, sockets, memoryBytes: memory.used }
  }

  /**
   * Never rejects.
   * @param ending ends the fetch when it is aborted, with what {@link failure} makes as the reason
   * @param stream for bodies that stream. Absent: none does
   */
  async fetch(request: EgressRequest, ending: AbortController, stream?: FetchStream): Promise<FetchOutcome> {
    const { signal } = ending
    const totalTimeoutMs = Math.min(this.#limits.totalTimeoutMs, request.timeoutMs ?? Number.POSITIVE_INFINITY)
    const limits = { ...this.#limits, totalTimeoutMs }
    const tally: ByteTally = { bytesOut: 0, bytesIn: 0 }
    const clock = new FetchClock(totalTimeoutMs, (isStreaming) =>
      ending.abort(failure(isStreaming ? 'idle' : running.isWaiting ? 'wait-timed-out' : 'timed-out')),
    )
    const running: RunningFetch = { request, limits, tally, signal, stream, clock, host: '', isWaiting: false }
    if (stream?.aborted !== undefined) ending.abort(stream.aborted)
    if (stream !== undefined) stream.onAbort = (cause) => ending.abort(cause)
    if (stream?.body !== undefined) stream.body.onTaken = () => clock.moved()
    const lease = this.#open.begin(request)
    try {
      signal.throwIfAborted()
      if (lease === undefined) throw failure('invocation-full')
      if (!lease.grow(request.head.length * 2 + request.body.length)) throw failure('memory-full')
      const { body, ...result } = await this.#follow(running, lease)
      return { result, body, end: 'ok', ...tally }
    } catch (cause) {
      const { end, message } = describeFailure(cause, running.host, limits)
      return { result: { ok: false, message }, body: NO_BODY, end, ...tally }
    } finally {
      clock.stop()
      stream?.close()
      lease?.release()
    }
  }

  /** Fetches, and follows redirects: each hop is checked like the first. */
  async #follow(
    running: RunningFetch,
    lease: FetchLease,
  ): Promise<Extract<FetchResult, { ok: true }> & { readonly body: Uint8Array }> {
    const { request, limits, stream } = running
    const { redirect, ...head } = parseFetchHead(request.head, limits.maxRequestHeadLength)
    const locationOf = (status: number, headers: HeaderList): string | undefined =>
      redirect === 'manual' ? undefined : redirectLocation(status, headers)
    const wantsBody: WantsBody = (status, headers) => locationOf(status, headers) === undefined
    let hop = firstHop(head, stream?.body ?? request.body, limits)
    for (let redirects = 0; ; redirects += 1) {
      running.host = hop.url.host.slice(0, MAX_SHOWN_HOST_LENGTH)
      if (request.hosts !== undefined && !isListed(request.hosts, hop.url)) throw failure('host-not-listed')
      const url = hop.url.href.slice(0, hop.url.href.length - hop.url.hash.length)
      const fetched = { ok: true, url, redirected: redirects > 0 } as const
      const respond: ExchangeParts['stream'] = (head, source, posted) => {
        running.clock.streams()
        return stream!.respond({ ...fetched, ...head }, source, posted)
      }
      const isStreamed = stream?.takesStream === true
      const response = await this.#exchange(hop, running, lease, { wantsBody, ...(isStreamed && { stream: respond }) })
      const { status, statusText, headers, body } = response
      const location = locationOf(status, headers)
      if (location === undefined) return { ...fetched, status, statusText, headers, body }
      if (redirect === 'error') throw failure('redirect-refused')
      if (redirects === limits.maxRedirects) throw failure('too-many-redirects')
      hop = redirectedHop(hop, status, location)
    }
  }

  async #exchange(
    hop: Hop,
    running: RunningFetch,
    lease: FetchLease,
    body: Pick<ExchangeParts, 'wantsBody' | 'stream'>,
  ): Promise<HopResponse> {
    const { request, limits, tally, signal, clock } = running
    const { slots, pool, reads: turns } = this.#outside
    const claim = { functionName: request.functionName, owner: request.owner, origin: hop.url.origin }
    running.isWaiting = true
    const slot = await slots.take(claim, signal)
    running.isWaiting = false
    const connection = pool.acquire(claim)
    let isReusable = false
    try {
      // At every hop, also to another origin: a redirect must be no way around the count of hops.
      const headers = [...hop.headers, ...(request.carpoolHeaders ?? [])]
      const response = await exchange(
        connection,
        { ...hop, headers },
        {
          limits,
          lease,
          tally,
          signal,
          holder: request,
          turns,
          onMoved: (state) => clock.tell(state),
          ...body,
        },
      )
      isReusable = response.isWhole
      return response
    } finally {
      if (isReusable) {
        pool.release(connection, claim, () => slot.release())
      } else {
        pool.discard(connection)
        slot.release()
      }
    }
  }
}
