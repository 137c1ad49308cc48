import { isIP } from 'node:net'
import type { SocketTarget, TlsOptions } from '@carpool/core'
import { refusal } from './failure.ts'
import { isHeaderList } from './hop.ts'

/** Of a target or of options of TLS, as JSON: certificates of a large company take half of it. */
const MAX_LENGTH = 256 * 1024
const MAX_HOST_LENGTH = 260
const MAX_TIMEOUT_MS = 2 ** 31 - 1
const MAX_ALPN = 16
const MAX_PROTOCOLS = 32

export type TcpTarget = Extract<SocketTarget, { kind: 'tcp' }>
export type WebSocketTarget = Extract<SocketTarget, { kind: 'websocket' }>

/**
 * Reads what a function's socket is to connect to. It comes from user code, so all of it is checked. The host is written as in
 * a URL then, without brackets: lower case, punycode, addresses in their usual form.
 * @throws refusal
 */
export function parseSocketTarget(text: string): SocketTarget {
  const target = parseObject<SocketTarget>(text, 'The target of a socket')
  if (target.kind === 'websocket') return parseWebSocketTarget(target)
  if (target.kind !== 'tcp') throw refusal('The kind of a socket must be tcp or websocket.')
  const { host, port, tls, timeoutMs } = target as Partial<Record<keyof TcpTarget, unknown>>
  if (typeof host !== 'string') throw refusal('The host of a socket must be a text.')
  if (!Number.isInteger(port) || (port as number) < 1 || (port as number) > 65_535) {
    throw refusal('The port of a socket must be a number from 1 to 65535.')
  }
  if (timeoutMs !== undefined && !isDuration(timeoutMs))
    throw refusal('The timeout of a socket must be a number of milliseconds.')
  return {
    kind: 'tcp',
    host: normalHost(host),
    port: port as number,
    ...(tls !== undefined && { tls: checkTlsOptions(tls) }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  }
}

function parseWebSocketTarget({ url, protocols, headers }: Partial<Record<keyof WebSocketTarget, unknown>>): WebSocketTarget {
  if (typeof url !== 'string') throw refusal('The URL of a WebSocket must be a text.')
  const isList = Array.isArray(protocols) && protocols.length <= MAX_PROTOCOLS && protocols.every(isToken)
  if (!isList || new Set(protocols).size < protocols.length) {
    throw refusal(`The protocols of a WebSocket must be up to ${MAX_PROTOCOLS} different tokens.`)
  }
  if (!isHeaderList(headers)) throw refusal('The headers of a WebSocket must be pairs of texts.')
  return { kind: 'websocket', url: webSocketUrl(url).href, protocols, headers }
}

function webSocketUrl(text: string): URL {
  const url = URL.parse(text.replace(/^http(?=s?:)/i, 'ws'))
  if (url === null) throw refusal('The URL is not valid.')
  if (url.protocol !== 'ws:' && url.protocol !== 'wss:') throw refusal('Only ws: and wss: URLs can be opened as a WebSocket.')
  if (url.username !== '' || url.password !== '') throw refusal('A URL with a user name or a password cannot be opened.')
  url.hash = ''
  return url
}

/** As RFC 9110 has it. */
function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^[!#$%&'*+.^_`|~\w-]{1,100}$/.test(value)
}

/** Reads how a connected socket is to speak TLS. @throws refusal */
export function parseTlsOptions(text: string): TlsOptions {
  return checkTlsOptions(parseObject<TlsOptions>(text, 'The TLS options of a socket'))
}

function parseObject<T extends object>(text: string, what: string): Partial<T> {
  if (text.length > MAX_LENGTH) throw refusal(`${what} has ${text.length} characters; the limit is ${MAX_LENGTH}.`)
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed === 'object' && parsed !== null) return parsed
  } catch {}
  throw refusal(`${what} cannot be read.`)
}

function isDuration(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MAX_TIMEOUT_MS
}

/** Begins another part of a URL, or is left out by the URL parser. */
const NO_HOST = /[\s/?#@\\%]|[\p{Cc}]/u

function normalHost(host: string): string {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  const isIpv6 = isIP(bare) === 6
  if (host.length <= MAX_HOST_LENGTH && !NO_HOST.test(bare) && (isIpv6 || !bare.includes(':'))) {
    const normal = URL.parse(`http://${isIpv6 ? `[${bare}]` : bare}/`)?.hostname
    if (normal !== undefined && normal !== '') return isIpv6 ? normal.slice(1, -1) : normal
  }
  throw refusal('The host of a socket must be a host name or an address.')
}

function checkTlsOptions(value: unknown): TlsOptions {
  if (typeof value !== 'object' || value === null) throw refusal('The TLS options of a socket cannot be read.')
  const { serverName, isVerified, alpn, ca, cert, key } = value as Partial<Record<keyof TlsOptions, unknown>>
  if (typeof serverName !== 'string' || serverName.length > MAX_HOST_LENGTH || serverName.includes('\0')) {
    throw refusal('The server name of a socket must be a host name.')
  }
  if (typeof isVerified !== 'boolean') throw refusal('Whether a certificate is verified must be true or false.')
  const isAlpn = Array.isArray(alpn) && alpn.length <= MAX_ALPN && alpn.every(isProtocol)
  if (!isAlpn) throw refusal(`The ALPN protocols of a socket must be up to ${MAX_ALPN} texts of 1 to 255 bytes.`)
  const texts = Object.entries({ ca, cert, key }).filter((entry): entry is [string, string] => entry[1] !== undefined)
  if (!texts.every(([, text]) => typeof text === 'string')) throw refusal('Certificates and keys of a socket must be texts.')
  return { serverName, isVerified, alpn, ...Object.fromEntries(texts) }
}

function isProtocol(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && Buffer.byteLength(value) <= 255
}
