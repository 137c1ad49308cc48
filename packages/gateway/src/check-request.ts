import type { IncomingMessage } from 'node:http'
import { CarpoolError } from '@carpool/core'
import type { GatewayLimits } from './gateway-limits.ts'

/** Those that the Fetch standard knows and allows. What another method means is decided by whoever serves it, and we serve none. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
/** What a request target may hold (RFC 9112, section 3.2): visible ASCII, and no fragment. */
const TARGET = /^[!"$-~]+$/
const ABSOLUTE_FORM = /^(https?):\/\/([^/?]*)/i
/** A host name or an address, with or without a port. Whatever else comes as `Host` could pass for a path in the function's URL. */
const HOST_PATTERN = /^(?:[\w.~-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i

export type RequestLimits = Pick<GatewayLimits, 'maxHeaders' | 'maxUrlBytes'>

/**
 * Refuses what Node.js' parser lets through although RFC 9112 does not allow it, or although a proxy in front may read it in another way. In
 * its strict mode the parser itself refuses the rest: lengths that are doubled or stand beside `Transfer-Encoding`, folded headers, bare line
 * feeds, blanks before a colon, and control characters. A request that is refused here says nothing reliable about where the next one
 * begins, so its connection is closed.
 * @throws CarpoolError `bad-request`, `headers-too-large`
 */
export function checkRequest(raw: IncomingMessage, { maxHeaders, maxUrlBytes }: RequestLimits): void {
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
  checkAuthority(authorityIn(target), raw.headers.host)
}

function checkHeaders({ rawHeaders, httpVersionMinor }: IncomingMessage): void {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    // Most headers are passed by their length alone.
    switch (name.length) {
      case 4:
        if (name.toLowerCase() === 'host') hosts++
        break
      case 6:
        if (name.toLowerCase() === 'expect') checkExpect(rawHeaders[index + 1])
        break
      case 7:
        if (name.toLowerCase() === 'upgrade') checkUpgrade(rawHeaders[index + 1])
        break
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') checkTransferEncoding(rawHeaders[index + 1], httpVersionMinor)
    }
  }
  if (hosts > 1) throw new CarpoolError('bad-request', 'A request may have one Host header, not more.')
  if (hosts === 0 && httpVersionMinor > 0) throw new CarpoolError('bad-request', 'A request must have a Host header.')
}

interface Authority {
  /** With the port if one is named. */
  readonly host: string
  /** The port that need not be named, with its colon. */
  readonly defaultPort: string
  /** How far it reaches, with the scheme. */
  readonly length: number
}

/** What stands before the path, if the target is a whole URL. */
export function authorityIn(target: string): Authority | undefined {
  const [whole, scheme, host] = target.startsWith('/') ? [] : (ABSOLUTE_FORM.exec(target) ?? [])
  if (whole === undefined || scheme === undefined || host === undefined) return undefined
  return { host, defaultPort: scheme.toLowerCase() === 'https' ? ':443' : ':80', length: whole.length }
}

/** Two servers on the way that believe the URL and the header would not agree on whom the request is for, if these differed. */
function checkAuthority(authority: Authority | undefined, header: string | undefined): void {
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
  if (HOST_PATTERN.test(host)) return
  throw new CarpoolError('bad-request', `The host ${JSON.stringify(host.slice(0, 80))} is no name or address.`)
}

function checkExpect(value = ''): void {
  if (value.toLowerCase() === '100-continue') return
  throw new CarpoolError('bad-request', 'The only thing that a request may expect is 100-continue.')
}

/**
 * A client that offers HTTP/2 goes on with HTTP/1.1 when the offer is ignored, as RFC 9110, section 7.8, allows; some do so by default. Who
 * asks for anything else, such as WebSocket, wants nothing else.
 */
function checkUpgrade(value = ''): void {
  if (value.toLowerCase() === 'h2c') return
  throw new CarpoolError('bad-request', 'A connection cannot be upgraded to another protocol.')
}

function checkTransferEncoding(value = '', httpVersionMinor: number | null): void {
  if (httpVersionMinor === 0) throw new CarpoolError('bad-request', 'HTTP/1.0 has no Transfer-Encoding.')
  if (value.toLowerCase() === 'chunked') return
  throw new CarpoolError('bad-request', 'The only Transfer-Encoding that is supported is chunked.')
}

/** Whether the parser reads no request after this one, because it was offered another protocol. */
export function endsReading(raw: IncomingMessage): boolean {
  return raw.headers.upgrade !== undefined
}

/** Whether the client waits to be told that its body is wanted; HTTP/1.0 knows no such thing (RFC 9110, section 10.1.1). */
export function expectsContinue({ headers, httpVersionMinor }: IncomingMessage): boolean {
  return headers.expect !== undefined && httpVersionMinor !== 0
}
