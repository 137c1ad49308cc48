import type { HeaderList } from '@carpool/core'
import type { Invocation } from '../invocation.ts'
import { library } from '../libraries.ts'
import { stringSplit, stringTrim } from '../language/primordials.ts'
import { valueOfHeader } from '../web-api/fetch/headers.ts'
import { type Response, webSocketOf } from '../web-api/fetch/response.ts'

/** Answers with the response that gives the client a WebSocket, if it asked for one. */
export function acceptWebSocket(invocation: Invocation, response: Response, head: string): void {
  const { headers } = invocation.head
  if (valueIn(headers, 'upgrade') !== 'websocket') {
    return invocation.refuse('The response has status 101, and the request asked for no WebSocket.')
  }
  const protocol = valueOfHeader(response.headers, 'sec-websocket-protocol') ?? ''
  if (protocol !== '' && !isOffered(valueIn(headers, 'sec-websocket-protocol') ?? '', protocol)) {
    return invocation.refuse(`The client did not offer the subprotocol ${protocol}.`)
  }
  const { acceptFor, isUsable } = library('web-sockets')
  const socket = webSocketOf(response)
  if (!isUsable(socket)) return invocation.refuse('The WebSocket of the response was accepted, or given to another client.')
  const channel = invocation.acceptWebSocket(head)
  if (channel !== undefined) acceptFor(socket, channel, protocol, () => invocation.end())
}

function valueIn(headers: HeaderList, name: string): string | undefined {
  for (let index = 0; index < headers.length; index++) if (headers[index]![0] === name) return headers[index]![1]
  return undefined
}

function isOffered(list: string, protocol: string): boolean {
  const names = stringSplit(list, ',')
  for (let index = 0; index < names.length; index++) if (stringTrim(names[index]!) === protocol) return true
  return false
}
