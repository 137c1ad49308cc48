import type { IncomingMessage } from 'node:http'
import type { HeaderList, RequestHead } from '@carpool/core'
import { authorityIn } from './check-request.ts'
import { isReserved, namedByConnection } from './reserved-headers.ts'

const PREFIX_HEADER = 'x-forwarded-prefix'

export interface DecodedRequest {
  readonly functionName: string
  readonly head: RequestHead
}

/**
 * Reads `/<name>/<rest>` and what belongs to it. The function sees `/<rest>` as its path, and `/<name>` as `x-forwarded-prefix`.
 *
 * Of what the function sees, `clientIp` alone is beyond doubt: it is the other end of the TCP connection, so a proxy's address if one stands
 * in front. `Host`, `Forwarded` and `X-Forwarded-*` are passed on as they came, since a proxy in front may have set them; without one that
 * replaces them, anybody can. `x-forwarded-prefix` and `x-carpool-*` are ours: what a caller sends under these names is dropped,
 * as are headers that are for the connection alone, and those that `Connection` says are.
 * @param raw a request that passed its check
 * @param target the request target as it came: a path, or a whole URL as proxies send it (RFC 9112, section 3.2)
 * @param prefix path below which functions answer, without a slash at the end
 */
export function decodeRequest(raw: IncomingMessage, target: string, prefix = ''): DecodedRequest {
  const authority = authorityIn(target)
  const local = target.slice((authority?.length ?? 0) + prefix.length)
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

function forwardedHeaders(raw: IncomingMessage, prefix: string): HeaderList {
  const headers: Array<readonly [string, string]> = []
  const ofConnection = namedByConnection(raw.headers.connection)
  const all = raw.headers
  // All are its own: Node.js makes it an object without a prototype.
  for (const name in all) {
    const value = all[name]
    if (value === undefined || isReserved(name) || name === PREFIX_HEADER || ofConnection.has(name)) continue
    if (typeof value === 'string') headers.push([name, value])
    else for (const one of value) headers.push([name, one])
  }
  headers.push([PREFIX_HEADER, prefix])
  return headers
}
