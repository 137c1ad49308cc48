/**
 * `node:net` in a function: Node.js' own module over sockets of the host. Many packages only ask it about addresses, so the
 * rest is loaded when it is first used.
 */
import EventEmitter from 'node:events'
import addresses from './internal/addresses.ts'
import { lazily } from './internal/lazily.ts'
import { refuse } from './refuse.ts'

declare const require: (name: string) => object

const { isIP, isIPv4, isIPv6 } = addresses
const WHY = 'nothing reaches it but its calls; node:http has servers that answer them'
const { BoundSocket, createServer } = refuse('net', WHY, ['BoundSocket', 'createServer'])

/** Can be extended and asked about, as packages do. */
class Server extends EventEmitter {
  listen(): never {
    return createServer!() as never
  }
}

const LATER = [
  '_normalizeArgs',
  'BlockList',
  'connect',
  'createConnection',
  'getDefaultAutoSelectFamily',
  'getDefaultAutoSelectFamilyAttemptTimeout',
  'setDefaultAutoSelectFamily',
  'setDefaultAutoSelectFamilyAttemptTimeout',
  'Socket',
  'SocketAddress',
  'Stream',
] as const

export default lazily({ BoundSocket, createServer, isIP, isIPv4, isIPv6, Server }, LATER, () => require('carpool-node:own/net'))
