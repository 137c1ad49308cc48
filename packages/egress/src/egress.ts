import type { FailedFetch, FetchedHead, FetchHead, HeaderList } from '@carpool/core'
import { Agent } from 'undici'
import { createAddressPolicy } from './address-policy.ts'
import { decompress } from './decompress.ts'
import { describeFailure, failure } from './failure.ts'
import { fetchTarget } from './fetch-target.ts'
import { createGuardedConnector, type Resolve } from './guarded-connector.ts'
import { requestHeaders, responseHeaders } from './header-policy.ts'
import { redirectedHop, redirectLocation, type Hop } from './redirect.ts'

export interface EgressOptions {
  /** Address ranges in CIDR form that are open although they are not on the public internet. Default: none. */
  readonly allow?: readonly string[]
  /** Largest request body. Default: 10 MiB. */
  readonly maxRequestBytes?: number
  /** Largest response body, before and after decompression. Default: 10 MiB. */
  readonly maxResponseBytes?: number
  /** Longest time for a fetch with all its redirects. Default: 30000. */
  readonly totalTimeoutMs?: number
  /** Default: 5000. */
  readonly connectTimeoutMs?: number
  /** Most connections to one origin; further fetches wait for one. Default: 10000, as invocations that wait for one upstream must not queue. */
  readonly connectionsPerOrigin?: number
  /** Default: 5. */
  readonly maxRedirects?: number
  /** Gives the addresses of a host name. Default: the resolver of the system. */
  readonly resolve?: Resolve
}

export interface EgressRequest extends FetchHead {
  /** Empty: none. */
  readonly body: Uint8Array
}

export type EgressResult = (FetchedHead & { readonly body: Uint8Array }) | FailedFetch

/** Fetches for functions, under policy. */
export interface Egress {
  /** Never rejects. */
  fetch(request: EgressRequest, signal: AbortSignal): Promise<EgressResult>
  /** Ends all connections; fetches at work fail. */
  close(): Promise<void>
}

interface HopResponse {
  readonly status: number
  readonly statusText: string
  readonly headers: HeaderList
  readonly body: { bytes(): Promise<Uint8Array>; dump(options: { limit: number }): Promise<unknown> }
}

const FORBIDDEN_METHODS: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK'])
const NORMALISED_METHODS: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT'])
const MAX_REDIRECT_BODY_BYTES = 16 * 1024

/** @throws CarpoolError `invalid-setting` if a range of `allow` is none */
export function createEgress(options: EgressOptions = {}): Egress {
  const {
    allow = [],
    maxRequestBytes = 10 * 1024 * 1024,
    maxResponseBytes = 10 * 1024 * 1024,
    totalTimeoutMs = 30_000,
    connectTimeoutMs = 5_000,
    connectionsPerOrigin = 10_000,
    maxRedirects = 5,
    resolve,
  } = options
  const agent = new Agent({
    connect: createGuardedConnector({ policy: createAddressPolicy(allow), connectTimeoutMs, ...(resolve && { resolve }) }),
    connections: connectionsPerOrigin,
    allowH2: false,
    // The total time covers both.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: maxResponseBytes,
  })

  async function send({ url, method, headers, body }: Hop, signal: AbortSignal): Promise<HopResponse> {
    const response = await agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method,
      headers: headers.flat(),
      body,
      signal,
      responseHeaders: 'raw',
    })
    // With `raw`, names and values alternate; the types do not know.
    const raw = response.headers as unknown as readonly string[]
    const pairs = Array.from({ length: raw.length / 2 }, (_, index) => [raw[2 * index] ?? '', raw[2 * index + 1] ?? ''] as const)
    return { status: response.statusCode, statusText: response.statusText, headers: responseHeaders(pairs), body: response.body }
  }

  async function follow(first: Hop, redirect: EgressRequest['redirect'], signal: AbortSignal): Promise<EgressResult> {
    let hop = first
    try {
      for (let redirects = 0; ; redirects += 1) {
        const { status, statusText, headers, body } = await send(hop, signal)
        const location = redirect === 'manual' ? undefined : redirectLocation(status, headers)
        if (location === undefined) {
          const decoded = await decompress(headers, await body.bytes(), maxResponseBytes)
          const url = hop.url.href.slice(0, hop.url.href.length - hop.url.hash.length)
          return { ok: true, status, statusText, url, redirected: redirects > 0, ...decoded }
        }
        await body.dump({ limit: MAX_REDIRECT_BODY_BYTES })
        if (redirect === 'error') throw failure('redirect-refused')
        if (redirects === maxRedirects) throw failure('too-many-redirects')
        const next = redirectedHop(hop, status, location)
        if ('refusal' in next) return { ok: false, message: next.refusal }
        hop = next.hop
      }
    } catch (cause) {
      return { ok: false, message: describeFailure(cause, hop.url.host, maxResponseBytes) }
    }
  }

  async function fetchInTime(request: EgressRequest, signal: AbortSignal): Promise<EgressResult> {
    const first = firstHop(request, maxRequestBytes)
    if ('refusal' in first) return { ok: false, message: first.refusal }
    const ending = new AbortController()
    const onAbort = (): void => ending.abort(failure('aborted'))
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    const timer = setTimeout(() => ending.abort(failure('timed-out')), totalTimeoutMs)
    try {
      return await follow(first.hop, request.redirect, ending.signal)
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    }
  }

  return {
    // What follow does not catch is a request that is not of its type.
    fetch: (request, signal) => fetchInTime(request, signal).catch(() => ({ ok: false, message: 'The request is not valid.' })),
    close: () => agent.destroy(),
  }
}

function firstHop(
  { method, url, headers, body }: EgressRequest,
  maxRequestBytes: number,
): { readonly hop: Hop } | { readonly refusal: string } {
  if (body.length > maxRequestBytes) {
    return { refusal: `The request body has ${body.length} bytes; the limit is ${maxRequestBytes}.` }
  }
  const target = fetchTarget(url)
  if ('refusal' in target) return target
  const upper = method.toUpperCase()
  if (FORBIDDEN_METHODS.has(upper)) return { refusal: `The method ${upper} cannot be used.` }
  const hasBody = body.length > 0
  if (hasBody && (upper === 'GET' || upper === 'HEAD')) return { refusal: `A ${upper} request cannot have a body.` }
  return {
    hop: {
      url: target.url,
      method: NORMALISED_METHODS.has(upper) ? upper : method,
      headers: requestHeaders(headers),
      body: hasBody ? body : null,
    },
  }
}
