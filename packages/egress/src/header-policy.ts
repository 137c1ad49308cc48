import type { HeaderList } from '@carpool/core'

/** Belong to one connection, or are made anew for it. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
])
/** Made by the client, or by Carpool: a function that could set them could hide from the count of its hops (RFC 8586). */
const REQUEST_ONLY_HEADERS: ReadonlySet<string> = new Set(['host', 'content-length', 'expect', 'cdn-loop'])
const OWN_PREFIX = 'x-carpool-'
const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set(['authorization', 'cookie'])
const BODY_HEADERS: ReadonlySet<string> = new Set(['content-encoding', 'content-language', 'content-location', 'content-type'])

/** What of a function's headers is sent, with the defaults of a fetch. */
export function requestHeaders(headers: HeaderList): HeaderList {
  const kept = withoutConnectionHeaders(headers).filter(
    ([name]) => !REQUEST_ONLY_HEADERS.has(name) && !name.startsWith(OWN_PREFIX),
  )
  const has = (wanted: string): boolean => kept.some(([name]) => name === wanted)
  const defaults: HeaderList = [
    ['accept', '*/*'],
    // A range of a compressed response could not be decompressed.
    ['accept-encoding', has('range') ? 'identity' : 'gzip, br'],
    ['user-agent', 'carpool'],
  ]
  return [...kept, ...defaults.filter(([name]) => !has(name))]
}

/** What of a function's headers is sent with the handshake of a WebSocket. */
export function handshakeHeaders(headers: HeaderList): HeaderList {
  const kept = withoutConnectionHeaders(headers).filter(
    ([name]) => !REQUEST_ONLY_HEADERS.has(name) && !name.startsWith(OWN_PREFIX) && !name.startsWith('sec-websocket-'),
  )
  return kept.some(([name]) => name === 'user-agent') ? kept : [...kept, ['user-agent', 'carpool']]
}

/** What of a response's headers a function gets to see. */
export function responseHeaders(headers: HeaderList): HeaderList {
  return withoutConnectionHeaders(headers)
}

/** For a redirect to another origin, which must not learn what was meant for the first. */
export function withoutCredentials(headers: HeaderList): HeaderList {
  return headers.filter(([name]) => !CREDENTIAL_HEADERS.has(name))
}

/** For a redirect that turns the request into a GET. */
export function withoutBodyHeaders(headers: HeaderList): HeaderList {
  return headers.filter(([name]) => !BODY_HEADERS.has(name))
}

function withoutConnectionHeaders(headers: HeaderList): HeaderList {
  const lowered = headers.map(([name, value]) => [name.toLowerCase(), value] as const)
  const listed = new Set(
    lowered
      .filter(([name]) => name === 'connection')
      .flatMap(([, value]) => value.split(',').map((part) => part.trim().toLowerCase())),
  )
  return lowered.filter(([name]) => !CONNECTION_HEADERS.has(name) && !listed.has(name) && !name.startsWith('proxy-'))
}
