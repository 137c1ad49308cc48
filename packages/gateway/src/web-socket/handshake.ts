import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { CarpoolError, type HeaderList } from '@carpool/core'
import { STATUS_CODES } from '@carpool/core/node-http'
import { INVOCATION_HEADER } from '../response-encoder.ts'
import { hasBody } from '../request-body.ts'
import { isReserved } from '../request.ts'

/** 16 bytes in base64. */
const KEY = /^[+/\dA-Za-z]{21}[AQgw]==$/
const TOKEN = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/
/** What a server puts behind the key (RFC 6455, section 1.3). */
const KEY_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** The only version that there is. */
export const WEB_SOCKET_VERSION = '13'
/** They are ours to answer with. */
const HANDSHAKE_HEADERS: ReadonlySet<string> = new Set([
  'content-length',
  'date',
  'sec-websocket-accept',
  'sec-websocket-extensions',
  'sec-websocket-protocol',
  'server',
])

/** Whether a request asks for a WebSocket. */
export function asksForWebSocket({ headers, method }: Pick<IncomingMessage, 'headers' | 'method'>): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket' && method !== 'CONNECT'
}

/**
 * Checks what a client opens a WebSocket with (RFC 6455, section 4.2.1). Its origin is the function's to look at.
 * @throws CarpoolError `bad-request`
 */
export function checkHandshake(request: IncomingMessage): void {
  const { method, headers, httpVersionMinor } = request
  const refuse = (detail: string): never => {
    throw new CarpoolError('bad-request', detail)
  }
  if (method !== 'GET') refuse('The method of a request for a WebSocket is GET.')
  if (httpVersionMinor === 0) refuse('HTTP/1.0 has no WebSockets.')
  if (hasBody(request)) refuse('A request for a WebSocket has no body.')
  if (headers['sec-websocket-version'] !== WEB_SOCKET_VERSION) {
    refuse(`The version of a WebSocket must be ${WEB_SOCKET_VERSION}, by Sec-WebSocket-Version.`)
  }
  if (!KEY.test(headers['sec-websocket-key'] ?? '')) refuse('Sec-WebSocket-Key must be 16 bytes in base64.')
  const offered = headers['sec-websocket-protocol']
  if (offered === undefined) return
  const names = protocolsIn(offered)
  if (names.some((name) => !TOKEN.test(name)) || new Set(names).size < names.length) {
    refuse('Sec-WebSocket-Protocol must be names, each once, between commas.')
  }
}

function protocolsIn(header: string): string[] {
  return header.split(',').map((name) => name.trim())
}

/** The answer that accepts a WebSocket, or why the function's cannot. */
export function acceptance(
  request: IncomingMessage,
  headers: HeaderList,
  id: string,
): { readonly text: string } | { readonly problem: string } {
  const lines = [`HTTP/1.1 101 ${STATUS_CODES[101]}`, 'Upgrade: websocket', 'Connection: Upgrade']
  lines.push(`Sec-WebSocket-Accept: ${acceptKey(request.headers['sec-websocket-key'] ?? '')}`, `${INVOCATION_HEADER}: ${id}`)
  for (const [name, value] of headers) {
    if (name === 'sec-websocket-protocol') {
      if (!protocolsIn(request.headers['sec-websocket-protocol'] ?? '').includes(value)) {
        return { problem: `The client did not offer the subprotocol ${JSON.stringify(value)}.` }
      }
      lines.push(`Sec-WebSocket-Protocol: ${value}`)
    } else if (!HANDSHAKE_HEADERS.has(name) && !isReserved(name)) lines.push(`${name}: ${value}`)
  }
  return { text: `${lines.join('\r\n')}\r\n\r\n` }
}

function acceptKey(key: string): string {
  return createHash('sha1')
    .update(key + KEY_SUFFIX)
    .digest('base64')
}
