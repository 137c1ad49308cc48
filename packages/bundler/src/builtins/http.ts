/** `node:http` in a function: requests go out by fetch, and servers answer the function's calls. */
import common from 'carpool-node:_http_common'
import outgoing from 'carpool-node:_http_outgoing'
import serverParts from 'carpool-node:_http_server'
import { Agent, ClientRequest } from './http/client.ts'
import { createServer, IncomingMessage, Server, ServerResponse } from './http/server.ts'
import { refuse } from './refuse.ts'

type Arguments = [input: never, options?: never, callback?: never]

const { validateHeaderName, validateHeaderValue, OutgoingMessage } = outgoing as Record<string, unknown>
const { STATUS_CODES } = serverParts as Record<string, unknown>
const { methods } = common as unknown as { readonly methods: readonly string[] }

/** The functions of `node:http`, or of `node:https`, which differ in the scheme that is meant where none is given. */
export function clientOf(protocol: string): Record<string, unknown> {
  class SchemeAgent extends Agent {
    constructor(options?: Record<string, unknown>) {
      super(options, protocol)
    }
  }
  Object.defineProperty(SchemeAgent, 'name', { value: 'Agent' })
  const module: Record<string, unknown> = {
    Agent: SchemeAgent,
    globalAgent: new SchemeAgent({ keepAlive: true, scheduling: 'lifo', timeout: 5000 }),
    request: (...[input, options, callback]: Arguments) =>
      new ClientRequest(input, options, callback, module['globalAgent'] as Agent),
    get: (...[input, options, callback]: Arguments) =>
      new ClientRequest(input, options, callback, module['globalAgent'] as Agent).end(),
    createServer,
    Server,
  }
  return module
}

export default {
  ...refuse('http', 'it has no WebSockets', ['CloseEvent', 'MessageEvent', 'WebSocket']),
  ...clientOf('http:'),
  ClientRequest,
  IncomingMessage,
  maxHeaderSize: 16_384,
  METHODS: [...methods].toSorted(),
  OutgoingMessage,
  ServerResponse,
  setMaxIdleHTTPParsers() {},
  setGlobalProxyFromEnv: () => () => {},
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} as Record<string, unknown>
