import type { IncomingMessage } from 'node:http'
import { CarpoolError, type HeaderList, type HttpRequest } from '@carpool/core'
import { isReserved } from './reserved-headers.ts'

const NO_BYTES = new Uint8Array(0)

const PREFIX_HEADER = 'x-forwarded-prefix'

export interface DecodedRequest {
  readonly functionName: string
  readonly request: HttpRequest
}

/** A host name or an address, with or without a port. Whatever else comes as `Host` could pass for a path in the function's URL. */
const HOST_PATTERN = /^(?:[\w.~-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i
const ABSOLUTE_FORM = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i

/**
 * Reads `/<name>/<rest>` and what belongs to it. The function sees `/<rest>` as its path, and `/<name>` as `x-forwarded-prefix`.
 * @param target the request target as it came: a path, or a whole URL as proxies send it (RFC 9112, section 3.2)
 * @throws CarpoolError `bad-request` if the host is none
 */
export function decodeRequest(raw: IncomingMessage, target: string, body: Uint8Array | undefined): DecodedRequest {
  const absolute = target.startsWith('/') ? null : ABSOLUTE_FORM.exec(target)
  const local = absolute === null ? target : target.slice(absolute[0].length)
  const host = absolute?.[1] ?? raw.headers.host ?? 'localhost'
  if (!HOST_PATTERN.test(host)) {
    throw new CarpoolError('bad-request', `The host ${JSON.stringify(host.slice(0, 80))} is no name or address.`)
  }
  const end = endOfName(local)
  const functionName = local.slice(1, end)
  const rest = local.slice(end)
  const path = rest.startsWith('/') ? rest : `/${rest}`
  return {
    functionName,
    request: {
      method: raw.method ?? 'GET',
      url: `http://${host}${path}`,
      headers: forwardedHeaders(raw, functionName),
      clientIp: raw.socket.remoteAddress ?? '',
      body: body ?? NO_BYTES,
    },
  }
}

/** The function that a request target names, as far as it is one: to sort by, not to route. */
export function nameIn(target: string): string {
  return target.slice(1, endOfName(target))
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
    if (value === undefined || isReserved(name) || name === PREFIX_HEADER) continue
    if (typeof value === 'string') headers.push([name, value])
    else for (const one of value) headers.push([name, one])
  }
  headers.push([PREFIX_HEADER, `/${functionName}`])
  return headers
}
