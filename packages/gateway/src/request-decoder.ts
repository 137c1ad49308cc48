import type { IncomingMessage } from 'node:http'
import type { HeaderList, HttpRequest } from '@carpool/core'

const NO_BYTES = new Uint8Array(0)

/** Headers that speak of the connection to the gateway, not of the request, and those that only Carpool may set. */
const NOT_FORWARDED = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-forwarded-prefix',
])
const OWN_PREFIX = 'x-carpool-'

export interface DecodedRequest {
  readonly functionName: string
  readonly request: HttpRequest
}

/** Reads `/<name>/<rest>` and what belongs to it. The function sees `/<rest>` as its path, and `/<name>` as `x-forwarded-prefix`. */
export function decodeRequest(raw: IncomingMessage, body: Uint8Array | undefined): DecodedRequest {
  const target = raw.url ?? '/'
  const end = endOfName(target)
  const functionName = target.slice(1, end)
  const rest = target.slice(end)
  const path = rest.startsWith('/') ? rest : `/${rest}`
  return {
    functionName,
    request: {
      method: raw.method ?? 'GET',
      url: `http://${raw.headers.host ?? 'localhost'}${path}`,
      headers: forwardedHeaders(raw, functionName),
      clientIp: raw.socket.remoteAddress ?? '',
      body: body ?? NO_BYTES,
    },
  }
}

function endOfName(target: string): number {
  for (let index = 1; index < target.length; index++) {
    const character = target[index]
    if (character === '/' || character === '?') return index
  }
  return target.length
}

function forwardedHeaders(raw: IncomingMessage, functionName: string): HeaderList {
  const headers: Array<readonly [string, string]> = []
  for (const [name, value] of Object.entries(raw.headers)) {
    if (value === undefined || NOT_FORWARDED.has(name) || name.startsWith(OWN_PREFIX)) continue
    if (typeof value === 'string') headers.push([name, value])
    else for (const one of value) headers.push([name, one])
  }
  headers.push(['x-forwarded-prefix', `/${functionName}`])
  return headers
}
