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
import { Channel, type Framing, NOT_SENT } from './channels.ts'
import { jsonParse, jsonStringify, SafeError, SafeMap, SafeTypeError, typedArrayLength } from './language/primordials.ts'
import { bridge, carriedByTimer, carryForTimer, enter, invocationNow, tellCallsApart } from './port.ts'
import { describeError, reportUncaught } from './web-api/errors.ts'

/** What hears of a socket that it is connected, and how it ended. */
interface Connecting {
  connected(info: ConnectedSocket): void
  closed(end: SocketEnd): void
}

const sockets = new SafeMap<number, Connecting>()
let last = 0

/** A socket of the function. It belongs to no call: its entries run on behalf of the one that wrote to it last. */
class GuestSocket implements OpenSocket, Connecting {
  readonly #number = ++last
  readonly #events: SocketEvents
  readonly #carried = carriedByTimer()
  readonly #channel: Channel
  /** What the function was given and has not passed on, in bytes. */
  #untakenBytes = 0
  /** It was asked to speak TLS, and does not yet. */
  #awaitsTls = false

  constructor(target: string, events: SocketEvents) {
    this.#events = events
    const framing: Framing = { begin: () => true, broke: (error) => this.#broke(error) }
    this.#channel = new Channel(OF_SOCKET, this.#number, invocationNow(), undefined, framing)
    this.#channel.onRoom = () => this.#tell(() => this.#events.room())
    this.#channel.receive({
      data: (bytes) => this.#came(bytes),
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
    this.#untakenBytes -= bytes
    this.#channel.credit(bytes)
  }

  startTls(options: TlsOptions): void {
    this.#channel.flush()
    if (!sockets.has(this.#number)) throw new SafeTypeError(NOT_SENT)
    // Behind the start of TLS it could not be told from what comes by TLS.
    if (this.#untakenBytes > 0) {
      throw new SafeTypeError(`TLS cannot start while ${this.#untakenBytes} bytes that came in the clear are not read.`)
    }
    const { leavingBytes } = this.#channel
    // Whatever leaves behind the request would speak TLS.
    if (leavingBytes > 0) throw new SafeTypeError(`TLS cannot start while ${leavingBytes} bytes that were sent before wait.`)
    this.#awaitsTls = true
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
    if (info.tls !== undefined) this.#awaitsTls = false
    this.#tell(() => this.#events.connected(info))
  }

  closed(end: SocketEnd): void {
    enter(this.#channel.invocation)
    sockets.delete(this.#number)
    this.#channel.close('')
    this.#tell(() => this.#events.closed(end))
  }

  #came(bytes: Uint8Array<ArrayBuffer>): void {
    if (!this.#awaitsTls) {
      this.#untakenBytes += typedArrayLength(bytes)
      return this.#tell(() => this.#events.data(bytes))
    }
    // Whoever is on the path may have sent it: nobody is to take it for something that came by TLS.
    this.stop()
    const message = 'The other side sent bytes in the clear where TLS was to begin.'
    this.#tell(() => this.#events.closed({ ok: false, code: 'ERR_SSL_WRONG_VERSION_NUMBER', message }))
  }

  /** What was written could not be sent. The other side is to see that it breaks off. */
  #broke(error: unknown): void {
    // If the function is about to stop it, it hears nothing more of it.
    const isOpen = sockets.delete(this.#number)
    try {
      bridge.streamAbort(this.#number, OF_SOCKET, NOT_SENT)
    } finally {
      if (isOpen) {
        enter(this.#channel.invocation)
        this.#channel.close('')
        const message = `${NOT_SENT} ${describeError(error).message}`
        this.#tell(() => this.#events.closed({ ok: false, code: 'ERR_STREAM_DESTROYED', message }))
      }
    }
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
  checkCount()
  tellCallsApart()
  return new GuestSocket(jsonStringify(target), events)
}

/** A WebSocket that the function opens: its messages come and go by the channel. */
export class OpenWebSocket implements Connecting {
  readonly channel: Channel
  readonly #number = ++last
  readonly #events: Connecting

  /** @throws Error if too many sockets are open */
  constructor(url: string, protocols: readonly string[], events: Connecting) {
    checkCount()
    tellCallsApart()
    this.#events = events
    this.channel = new Channel(OF_SOCKET, this.#number, invocationNow())
    sockets.set(this.#number, this)
    const target: SocketTarget = { kind: 'websocket', url, protocols, headers: [] }
    bridge.openSocket(invocationNow(), this.#number, jsonStringify(target))
  }

  /** Breaks it off: neither event is told. */
  stop(): void {
    if (!sockets.delete(this.#number)) return
    this.channel.close(undefined)
    bridge.stopSocket(this.#number)
  }

  connected(info: ConnectedSocket): void {
    enter(this.channel.invocation)
    this.#events.connected(info)
  }

  closed(end: SocketEnd): void {
    enter(this.channel.invocation)
    sockets.delete(this.#number)
    this.#events.closed(end)
    this.channel.close(undefined)
  }
}

function checkCount(): void {
  if (sockets.size < MAX_SOCKETS_PER_GUEST) return
  throw new SafeError(`A function can have ${MAX_SOCKETS_PER_GUEST} sockets open at the same time, not more.`)
}

/** Entry: a socket is connected, or speaks TLS now. */
export function socketConnected(number: number, info: string): void {
  sockets.get(number)?.connected(jsonParse(info) as ConnectedSocket)
}

/** Entry: a socket has ended. */
export function socketClosed(number: number, end: string): void {
  sockets.get(number)?.closed(jsonParse(end) as SocketEnd)
}
