/** `node:net` in a function: addresses can be told apart, but there are no sockets. */
import EventEmitter from 'node:events'
import addresses from './internal/addresses.ts'
import { refuse } from './refuse.ts'

const { isIP, isIPv4, isIPv6 } = addresses

const WHY = 'it has no sockets; use fetch, or node:http over it'
const { BoundSocket, createServer, createConnection, connect } = refuse('net', WHY, [
  'BoundSocket',
  'createServer',
  'createConnection',
  'connect',
])

/** Can be extended and asked about, as packages do; what would reach a network is refused. */
class Socket extends EventEmitter {
  connecting = false
  destroyed = false
  readable = false
  writable = false
  remoteAddress: string | undefined = undefined

  connect(): never {
    return connect!() as never
  }
  setTimeout(): this {
    return this
  }
  setNoDelay(): this {
    return this
  }
  setKeepAlive(): this {
    return this
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
  destroy(): this {
    this.destroyed = true
    return this
  }
  end(): this {
    return this
  }
}

class Server extends EventEmitter {
  listen(): never {
    return createServer!() as never
  }
}

class BlockList {
  addAddress(): never {
    return refuse('net', 'it has no sockets', ['BlockList'])['BlockList']!() as never
  }
}
class SocketAddress {}

let autoSelect = true
const getDefaultAutoSelectFamily = (): boolean => autoSelect
const setDefaultAutoSelectFamily = (value: boolean): void => {
  autoSelect = value
}
const getDefaultAutoSelectFamilyAttemptTimeout = (): number => 250
const setDefaultAutoSelectFamilyAttemptTimeout = (): void => {}
const Stream = Socket

export {
  BlockList,
  BoundSocket,
  connect,
  createConnection,
  createServer,
  getDefaultAutoSelectFamily,
  getDefaultAutoSelectFamilyAttemptTimeout,
  isIP,
  isIPv4,
  isIPv6,
  Server,
  setDefaultAutoSelectFamily,
  setDefaultAutoSelectFamilyAttemptTimeout,
  Socket,
  SocketAddress,
  Stream,
}
export default {
  BlockList,
  BoundSocket,
  connect,
  createConnection,
  createServer,
  getDefaultAutoSelectFamily,
  getDefaultAutoSelectFamilyAttemptTimeout,
  isIP,
  isIPv4,
  isIPv6,
  Server,
  setDefaultAutoSelectFamily,
  setDefaultAutoSelectFamilyAttemptTimeout,
  Socket,
  SocketAddress,
  Stream,
}
