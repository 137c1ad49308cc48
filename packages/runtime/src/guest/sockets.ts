import {
  type ConnectedSocket,
  MAX_SOCKETS_PER_GUEST,
  type OpenSocket,
  type SocketEnd,
  type SocketEvents,
  type SocketTarget,
  type TlsOptions,
} from '@carpool/core'
import { OF_SOCKET } from '../bridge.ts'
import { Channel } from './channels.ts'
import { jsonParse, jsonStringify, SafeError, SafeMap } from './language/primordials.ts'
import { carriedByTimer, carryForTimer } from './node-support.ts'
import { bridge, enter, invocationNow, tellCallsApart } from './port.ts'
import { reportUncaught } from './web-api/errors.ts'

const sockets = new SafeMap<number, GuestSocket>()
let last = 0

/** A socket of the function. It belongs to no call: its entries run on behalf of the one that wrote to it last. */
class GuestSocket implements OpenSocket {
  readonly #number = ++last
  readonly #events: SocketEvents
  readonly #carried = carriedByTimer()
  readonly #channel: Channel

  constructor(target: string, events: SocketEvents) {
    this.#events = events
    this.#channel = new Channel(OF_SOCKET, this.#number, invocationNow())
    this.#channel.onRoom = () => this.#tell(() => this.#events.room())
    this.#channel.receive({
      data: (bytes) => this.#tell(() => this.#events.data(bytes)),
      ended: () => this.#tell(() => this.#events.ended()),
      // Why comes with its end.
      failed: () => {},
    })
    sockets.set(this.#number, this)
    bridge.openSocket(invocationNow(), this.#number, target)
  }

  get isFull(): boolean {
    return this.#channel.isFull
  }

  send(bytes: Uint8Array): void {
    this.#channel.invocation = invocationNow()
    this.#channel.send(bytes)
  }

  end(): void {
    this.#channel.end()
  }

  took(bytes: number): void {
    this.#channel.credit(bytes)
  }

  startTls(options: TlsOptions): void {
    this.#channel.flush()
    bridge.startTls(this.#number, jsonStringify(options))
  }

  stop(): void {
    if (!sockets.delete(this.#number)) return
    // What was written before still leaves.
    this.#channel.flush()
    this.#channel.close('')
    bridge.stopSocket(this.#number)
  }

  connected(info: ConnectedSocket): void {
    enter(this.#channel.invocation)
    this.#tell(() => this.#events.connected(info))
  }

  closed(end: SocketEnd): void {
    enter(this.#channel.invocation)
    sockets.delete(this.#number)
    this.#channel.close('')
    this.#tell(() => this.#events.closed(end))
  }

  #tell(event: () => void): void {
    carryForTimer(this.#carried)
    try {
      event()
    } catch (error) {
      reportUncaught(error, 'error in an event of a socket')
    }
  }
}

/** Opens a socket on behalf of the invocation that runs. @throws Error if too many are open */
export function openSocket(target: SocketTarget, events: SocketEvents): OpenSocket {
  if (sockets.size >= MAX_SOCKETS_PER_GUEST) {
    throw new SafeError(`A function can have ${MAX_SOCKETS_PER_GUEST} sockets open at the same time, not more.`)
  }
  tellCallsApart()
  return new GuestSocket(jsonStringify(target), events)
}

/** Entry: a socket is connected, or speaks TLS now. */
export function socketConnected(number: number, info: string): void {
  sockets.get(number)?.connected(jsonParse(info) as ConnectedSocket)
}

/** Entry: a socket has ended. */
export function socketClosed(number: number, end: string): void {
  sockets.get(number)?.closed(jsonParse(end) as SocketEnd)
}
