import type { FetchHead, HeaderList } from '@carpool/core'
import { failure, refusal } from './failure.ts'
import { requestHeaders, withoutBodyHeaders, withoutCredentials } from './header-policy.ts'
import type { EgressLimits } from './limits.ts'

/** One request of a fetch; each redirect makes another. */
export interface Hop {
  readonly url: URL
  readonly method: string
  readonly headers: HeaderList
  /** Null: none. What streams can be sent once. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array> | null
}

/**
 * Reads the head of a fetch that a host sent. It comes from user code, so all of it is checked.
 * @throws refusal
 */
export function parseFetchHead(text: string, maxLength: number): FetchHead {
  if (text.length > maxLength) {
    throw refusal(`The URL and the headers of the request have ${text.length} characters; the limit is ${maxLength}.`)
  }
  let head: unknown
  try {
    head = JSON.parse(text)
  } catch {
    throw refusal('The head of the request is not readable.')
  }
  if (typeof head !== 'object' || head === null) throw refusal('The head of the request is not readable.')
  const { method, url, headers, redirect } = head as Partial<Record<keyof FetchHead, unknown>>
  if (typeof method !== 'string' || typeof url !== 'string') throw refusal('The method and the URL of a request must be texts.')
  if (!isHeaderList(headers)) throw refusal('The headers of a request must be pairs of texts.')
  if (redirect !== 'follow' && redirect !== 'error' && redirect !== 'manual') {
    throw refusal('The redirect mode of a request must be follow, error or manual.')
  }
  return { method, url, headers, redirect }
}

export function isHeaderList(value: unknown): value is HeaderList {
  return Array.isArray(value) && value.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(isText))
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

const FORBIDDEN_METHODS: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK'])
const NORMALISED_METHODS: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT'])

/**
 * The request with which a fetch begins.
 * @throws refusal if it must not be made
 */
export function firstHop(
  { method, url, headers }: Omit<FetchHead, 'redirect'>,
  body: Uint8Array | AsyncIterable<Uint8Array>,
  { maxRequestBytes }: EgressLimits,
): Hop {
  const streams = Symbol.asyncIterator in body
  if (!streams && body.length > maxRequestBytes) {
    throw refusal(`The request body has ${body.length} bytes; the limit is ${maxRequestBytes}.`)
  }
  const target = fetchTarget(url)
  const upper = method.toUpperCase()
  if (FORBIDDEN_METHODS.has(upper)) throw refusal(`The method ${upper} cannot be used.`)
  const hasBody = streams || body.length > 0
  if (hasBody && (upper === 'GET' || upper === 'HEAD')) throw refusal(`A ${upper} request cannot have a body.`)
  return {
    url: target,
    method: NORMALISED_METHODS.has(upper) ? upper : method,
    headers: streams ? [...requestHeaders(headers), ...givenLength(headers)] : requestHeaders(headers),
    body: hasBody ? body : null,
  }
}

/** How long a body that streams is, if the function says so: whoever takes it may want to know that before. */
function givenLength(headers: HeaderList): HeaderList {
  const lengths = headers.filter(([name, value]) => name.toLowerCase() === 'content-length' && /^[1-9]\d{0,14}$/.test(value))
  return lengths.length === 1 ? [['content-length', lengths[0]![1]]] : []
}

const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Where a response redirects to; undefined if it does not. Beyond ASCII it is read as UTF-8, as browsers do. */
export function redirectLocation(status: number, headers: HeaderList): string | undefined {
  const location = REDIRECT_STATUSES.has(status) ? headers.find(([name]) => name === 'location')?.[1] : undefined
  return location === undefined ? undefined : Buffer.from(location, 'latin1').toString()
}

/**
 * The request that a redirect asks for, by the rules of the fetch standard.
 * @throws refusal if it is not made
 */
export function redirectedHop(hop: Hop, status: number, location: string): Hop {
  const url = fetchTarget(location, hop.url)
  if (status !== 303 && hop.body !== null && Symbol.asyncIterator in hop.body) throw failure('stream-redirected')
  if (hop.url.protocol === 'https:' && url.protocol === 'http:') throw refusal('A redirect from https: to http: is not followed.')
  const becomesGet =
    (hop.method === 'POST' && (status === 301 || status === 302)) ||
    (status === 303 && hop.method !== 'GET' && hop.method !== 'HEAD')
  const headers = url.origin === hop.url.origin ? hop.headers : withoutCredentials(hop.headers)
  return becomesGet ? { url, method: 'GET', headers: withoutBodyHeaders(headers), body: null } : { ...hop, url, headers }
}

/**
 * Reads a URL that is to be fetched, and checks all but its address.
 * @param base what a relative URL is relative to, such as the URL that redirects
 * @throws refusal
 */
function fetchTarget(text: string, base?: URL): URL {
  const url = URL.parse(text, base)
  if (url === null) throw refusal('The URL is not valid.')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw refusal(`Only http: and https: can be fetched, not ${url.protocol.slice(0, 40)}`)
  }
  if (url.username !== '' || url.password !== '') throw refusal('A URL with a user name or a password cannot be fetched.')
  return url
}
