import type { IncomingMessage } from 'node:http'
import { CarpoolError, type HeaderList, type RequestHead } from '@carpool/core'
import type { GatewayLimits } from './gateway-limits.ts'
import { isHost } from './host.ts'

/** Those that the Fetch standard knows and allows. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
/** What a request target may hold (RFC 9112, section 3.2): visible ASCII, and no fragment. */
const TARGET = /^[!"$-~]+$/
const ABSOLUTE_FORM = /^(https?):\/\/([^/?]*)/i

/**
 * Refuses what Node.js' parser lets through although RFC 9112 does not allow it, or although a proxy in front may read it in
 * another way. In strict mode the parser itself refuses the rest: doubled lengths, lengths beside `Transfer-Encoding`, folded
 * headers, bare line feeds, blanks before a colon, and control characters. A request that is refused here says nothing reliable
 * about where the next one begins, so its connection must be closed.
 * @throws CarpoolError `bad-request`, `headers-too-large`
 */
export function checkRequest(
  raw: IncomingMessage,
  { maxHeaders, maxUrlBytes }: Pick<GatewayLimits, 'maxHeaders' | 'maxUrlBytes'>,
): void {
  const { url: target = '', method = '', rawHeaders, httpVersionMajor, httpVersion } = raw
  if (httpVersionMajor !== 1) throw new CarpoolError('bad-request', `HTTP/${httpVersion} is not spoken here; HTTP/1.1 is.`)
  if (!METHODS.has(method)) throw new CarpoolError('bad-request', `The method ${method} is not supported.`)
  if (target.length > maxUrlBytes) {
    throw new CarpoolError('headers-too-large', `The URL has ${target.length} bytes; the limit is ${maxUrlBytes}.`)
  }
  if (!TARGET.test(target)) {
    throw new CarpoolError('bad-request', 'The URL holds a character that must be percent-encoded, or a fragment.')
  }
  if (rawHeaders.length > maxHeaders * 2) {
    throw new CarpoolError('headers-too-large', `The request has ${rawHeaders.length / 2} headers; the limit is ${maxHeaders}.`)
  }
  checkHeaders(raw)
  checkAuthority(raw)
}

/** Node.js says so of a request with which it gives up the connection. */
type UpgradeableRequest = IncomingMessage & { readonly upgrade?: boolean }

function checkHeaders({ rawHeaders, httpVersionMinor, upgrade }: UpgradeableRequest): void {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    // The length alone rules out most headers.
    switch (name.length) {
      case 4:
        if (name.toLowerCase() === 'host') hosts++
        break
      case 6:
        if (name.toLowerCase() === 'expect') checkExpect(rawHeaders[index + 1])
        break
      case 7:
        if (name.toLowerCase() === 'upgrade') checkUpgrade(rawHeaders[index + 1], upgrade === true)
        break
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') checkTransferEncoding(rawHeaders[index + 1], httpVersionMinor)
    }
  }
  if (hosts > 1) throw new CarpoolError('bad-request', 'A request may have one Host header, not more.')
  if (hosts === 0 && httpVersionMinor > 0) throw new CarpoolError('bad-request', 'A request must have a Host header.')
}

function checkExpect(value = ''): void {
  if (value.toLowerCase() === '100-continue') return
  throw new CarpoolError('bad-request', 'The only thing that a request may expect is 100-continue.')
}

/**
 * A client that offers HTTP/2 goes on with HTTP/1.1 when the offer is ignored (RFC 9110, section 7.8); some do so by default. A
 * client that asks for another protocol cannot go on without it. There is one: WebSocket.
 * @param isUpgraded the connection was given up by the HTTP server: what comes behind the request is of the other protocol
 */
function checkUpgrade(value = '', isUpgraded: boolean): void {
  const protocol = value.toLowerCase()
  if (protocol === 'h2c' || (protocol === 'websocket' && isUpgraded)) return
  throw new CarpoolError('bad-request', 'A connection cannot be upgraded to another protocol.')
}

function checkTransferEncoding(value = '', httpVersionMinor: number | null): void {
  if (httpVersionMinor === 0) throw new CarpoolError('bad-request', 'HTTP/1.0 has no Transfer-Encoding.')
  if (value.toLowerCase() === 'chunked') return
  throw new CarpoolError('bad-request', 'The only Transfer-Encoding that is supported is chunked.')
}

interface Authority {
  /** With the port if one is named. */
  readonly host: string
  /** The port that need not be named, with its colon. */
  readonly defaultPort: string
  /** Length of scheme and authority in the target. */
  readonly length: number
}

/** What stands before the path, if the target is a whole URL. */
function authorityIn(target: string): Authority | undefined {
  const [whole, scheme, host] = target.startsWith('/') ? [] : (ABSOLUTE_FORM.exec(target) ?? [])
  if (whole === undefined || scheme === undefined || host === undefined) return undefined
  return { host, defaultPort: scheme.toLowerCase() === 'https' ? ':443' : ':80', length: whole.length }
}

/**
 * Refuses what is no host, in the header and in a target that is a whole URL. If the two named different hosts, two servers on
 * the way could disagree on whom the request is for.
 * @throws CarpoolError `bad-request`
 */
export function checkAuthority({ url = '', headers: { host: header } }: Pick<IncomingMessage, 'url' | 'headers'>): void {
  const authority = authorityIn(url)
  if (authority !== undefined) checkHost(authority.host)
  if (header !== undefined) checkHost(header)
  if (authority === undefined || header === undefined) return
  const { defaultPort } = authority
  const plain = (host: string): string => (host.endsWith(defaultPort) ? host.slice(0, -defaultPort.length) : host).toLowerCase()
  if (plain(authority.host) !== plain(header)) {
    throw new CarpoolError('bad-request', 'The URL and the Host header name different hosts.')
  }
}

function checkHost(host: string): void {
  if (isHost(host)) return
  throw new CarpoolError('bad-request', `The host ${JSON.stringify(host.slice(0, 80))} is no name or address.`)
}

/** Whether the parser reads no request after this one, because the client offered another protocol. */
export function endsReading(raw: IncomingMessage): boolean {
  return raw.headers.upgrade !== undefined
}

/** Whether the client sends its body only after `100 Continue`; HTTP/1.0 has no such thing (RFC 9110, section 10.1.1). */
export function expectsContinue({ headers, httpVersionMinor }: IncomingMessage): boolean {
  return headers.expect !== undefined && httpVersionMinor !== 0
}

const PREFIX_HEADER = 'x-forwarded-prefix'

/**
 * Reads `/<name>/<rest>` and what belongs to it. The function sees `/<rest>` as its path, and `/<name>` as `x-forwarded-prefix`.
 *
 * Of what the function sees, `clientIp` alone is beyond doubt: it is the other end of the TCP connection, so a proxy's address if
 * one stands in front. `Host`, `Forwarded` and `X-Forwarded-*` are passed on as they came, since a proxy in front may have set
 * them; without one that replaces them, anybody can. `x-forwarded-prefix` and `x-carpool-*` are ours: what a caller sends under
 * these names is dropped, as are headers that are for the connection alone, and those that `Connection` says are.
 * @param raw a request that passed {@link checkRequest}
 * @param target the request target as it came: a path, or a whole URL as proxies send it (RFC 9112, section 3.2)
 * @param prefix path below which functions answer, without a slash at the end
 */
export function decodeRequest(
  raw: IncomingMessage,
  target: string,
  prefix: string,
): { readonly functionName: string; readonly head: RequestHead } {
  const authority = authorityIn(target)
  const local = below(target.slice(authority?.length ?? 0), prefix)
  const host = authority?.host ?? raw.headers.host ?? 'localhost'
  const end = endOfName(local)
  const functionName = local.startsWith('/') ? local.slice(1, end) : ''
  const rest = local.slice(end)
  const path = rest.startsWith('/') ? rest : `/${rest}`
  return {
    functionName,
    head: {
      method: raw.method ?? 'GET',
      url: `http://${host}${path}`,
      headers: forwardedHeaders(raw, `${prefix}/${functionName}`),
      clientIp: raw.socket.remoteAddress ?? '',
    },
  }
}

/**
 * What of a path comes behind the prefix; empty if that is written in another way, as with percent-encoding, which the app's
 * router takes for the same: what it took for the name would not be what stands here.
 */
function below(path: string, prefix: string): string {
  const isBelow = path.startsWith(prefix) || path.slice(0, prefix.length).toLowerCase() === prefix.toLowerCase()
  return isBelow ? path.slice(prefix.length) : ''
}

/** The function that a path names, if it is one: to sort requests by, not to route them. */
export function functionNameIn(target: string): string {
  return target.slice(1, endOfName(target))
}

function endOfName(target: string): number {
  for (let index = 1; index < target.length; index++) {
    const character = target[index]
    if (character === '/' || character === '?') return index
  }
  return target.length
}

function forwardedHeaders(raw: UpgradeableRequest, prefix: string): HeaderList {
  const headers: Array<readonly [string, string]> = []
  const ofConnection = namedByConnection(raw.headers.connection)
  const all = raw.headers
  // Node.js makes it an object without a prototype, so all properties are its own.
  for (const name in all) {
    const value = all[name]
    if (value === undefined || isReserved(name) || name === PREFIX_HEADER || ofConnection.has(name)) continue
    if (typeof value === 'string') headers.push([name, value])
    else for (const one of value) headers.push([name, one])
  }
  headers.push([PREFIX_HEADER, prefix])
  // It is of the connection, but by it a function knows that it is asked for a WebSocket.
  if (raw.upgrade === true) headers.push(['upgrade', 'websocket'])
  return headers
}

/** Headers that speak of one connection, not of the request or the response that it carries (RFC 9110, section 7.6.1). */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
const OWN_PREFIX = 'x-carpool-'
const NONE: ReadonlySet<string> = new Set()

/** Whether a header, named in lower case, is for the gateway alone: it is passed on neither to a function nor to a caller. */
export function isReserved(name: string): boolean {
  return CONNECTION_HEADERS.has(name) || name.startsWith(OWN_PREFIX)
}

/**
 * The headers, in lower case, that the `Connection` header of a request says are for its own connection (RFC 9110, section
 * 7.6.1): whoever passes the request on leaves them out.
 */
export function namedByConnection(value: string | undefined): ReadonlySet<string> {
  // Almost all clients send one of these, which name none.
  if (value === undefined || value === 'keep-alive' || value === 'close') return NONE
  return new Set(value.split(',').map((option) => option.trim().toLowerCase()))
}
