import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { CarpoolError, type Clock } from '@carpool/core'
import type { GatewayLimits } from '../gateway-limits.ts'
import { isFlushed } from './slow-clients.ts'
import { stopReading } from './stop-reading.ts'

/** How long the first two probes of a half-open connection wait, in ms: most answers are there by then. */
const PROBE_MS = 10
const PROBE_AGAIN_MS = 1000

/** A call whose answer is still to come. */
interface PendingCall {
  readonly response: ServerResponse
  cancel(): void
}

/**
 * What the gateway knows of one connection of a client. Because of pipelining there may be several requests on it at the same
 * time.
 */
export class ClientConnection {
  readonly socket: Socket
  /** When it was opened, or a request came on it last, in ms. */
  usedAtMs: number
  /** The request body that is being read. */
  body: { fail(error: CarpoolError): void } | undefined
  /** Whether it makes room for new ones when no idle one does, whatever is under way on it. */
  yields = false
  /** Why the rest of the newest request cannot be read. */
  broken: CarpoolError | undefined
  /** In the order in which they came. */
  readonly #pending: PendingCall[] = []
  #newest: ServerResponse | undefined
  #isOver = false

  constructor(socket: Socket, nowMs: number) {
    this.socket = socket
    this.usedAtMs = nowMs
  }

  /** A request came. @returns false if it came behind one that ends the connection: its answer could not be sent */
  receive(response: ServerResponse, nowMs: number): boolean {
    if (this.#isOver) return false
    this.#newest = response
    this.usedAtMs = nowMs
    return true
  }

  /** Whether everything that came has been answered, the answers have left, and Node.js has let go of the last of them. */
  get isIdle(): boolean {
    return this.#newest === undefined || (isFlushed(this.#newest) && this.#newest.socket === null)
  }

  /** Whether no later request has come, so that the connection may be closed behind this one's answer. */
  isNewest(response: ServerResponse): boolean {
    return this.#newest === response
  }

  /** Takes no further request. */
  refuseFurther(): void {
    this.#isOver = true
  }

  /**
   * What came could not be read.
   * @param refuse answers with the error on the connection itself; called once everything that came before has its answer, so
   * that it is not taken for the answer to another request. Not called if it is the body of a request that is broken: that
   * request is answered.
   * @returns false if nothing more is read or refused on the connection in any case
   */
  fail(error: CarpoolError, refuse: () => void): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    const newest = this.#newest
    if (newest === undefined || isFlushed(newest)) refuse()
    else if (newest.req.complete) {
      // What else comes would only fail again.
      stopReading(this.socket)
      newest.once('finish', refuse)
    } else {
      this.broken = error
      this.body?.fail(error)
    }
    return true
  }

  /** How many calls wait for their answers. */
  get pending(): number {
    return this.#pending.length
  }

  /** Adds a call that is canceled when the connection closes; at once if it has. */
  add(call: PendingCall): void {
    if (this.socket.destroyed) call.cancel()
    this.#pending.push(call)
  }

  /** Called before the answer of a call is written. */
  remove(call: PendingCall): void {
    const index = this.#pending.indexOf(call)
    if (index >= 0) this.#pending.splice(index, 1)
  }

  /**
   * The client has closed its side: it may have left, or only have nothing more to send (RFC 9112, section 9.6; `nc` does so).
   * TCP tells the two apart only when something is sent: a client that left answers with a reset, which the next write runs into.
   * So the connection is probed with `100 Continue`, which a client must read past at any time (RFC 9110, section 15.2), until
   * all its calls are answered or it is found closed. HTTP/1.0 has no `100 Continue`: such a client counts as waiting.
   *
   * In the middle of an answer that streams nothing can be asked. Who has nothing more to send says so before there is an answer;
   * who says so then has left.
   */
  probeHalfOpen(): void {
    if (this.#pending[0]?.response.headersSent === true) return void this.socket.destroy()
    let probes = 0
    const probe = (): void => {
      if (this.socket.destroyed || this.isIdle) return
      const response = this.#pending[0]?.response
      if (response !== undefined && !response.headersSent) {
        if (response.req.httpVersionMinor === 0) return
        response.writeContinue()
      }
      // The second probe comes soon: it is the one that fails if the first was answered with a reset.
      setTimeout(probe, ++probes === 1 ? PROBE_MS : PROBE_AGAIN_MS)
    }
    // The timers keep the process alive: a connection whose client has closed its side does not, and who closes the gateway
    // waits.
    setTimeout(probe, PROBE_MS)
  }

  /** Called when the socket has closed. */
  closed(): void {
    this.#isOver = true
    for (const call of this.#pending.splice(0)) call.cancel()
  }
}

export interface ConnectionsOptions {
  readonly limits: Pick<GatewayLimits, 'maxConnections' | 'addressConnections'>
  readonly clock: Clock
  /** Answers a connection that is one too many, and closes it. */
  readonly refuse: (socket: Socket, error: CarpoolError) => void
}

/** A connection that was used this recently is not closed for another, in ms: its client is about to use it again. */
const SPARED_MS = 1000
/** Share of all connections that is closed at a time: to find the idle ones takes longer than to close them. */
const CLOSED_SHARE = 0.01
/** Pause in the search after fewer idle ones were found, in ms: else each refused client would cost a search through all. */
const SEARCH_AGAIN_MS = 100

/**
 * The connections of clients. At the limit, those that have been idle for longest are closed for new ones: clients keep
 * connections for later, and open new ones when they find them closed. So a client that opens connections and sends nothing keeps
 * nobody out.
 */
export class Connections {
  readonly #options: ConnectionsOptions
  readonly #all = new Map<Socket, ClientConnection>()
  readonly #byAddress = new Map<string, number>()
  #searchesAgainAtMs = -Infinity

  constructor(options: ConnectionsOptions) {
    this.#options = options
  }

  /** @returns undefined if it was refused or is closed */
  find(socket: Socket): ClientConnection | undefined {
    return this.#all.get(socket)
  }

  /** Whether clients have yet to take of their answers. */
  get hasUnread(): boolean {
    for (const socket of this.#all.keys()) if (socket.writableLength > 0) return true
    return false
  }

  /** Closes all, whatever is under way on them. The HTTP server knows none any more on which another protocol was asked for. */
  cut(): void {
    for (const socket of this.#all.keys()) socket.destroy()
  }

  /** @returns undefined if it was refused */
  accept(socket: Socket): ClientConnection | undefined {
    const { maxConnections, addressConnections } = this.#options.limits
    const nowMs = this.#options.clock()
    if (this.#all.size >= maxConnections && nowMs >= this.#searchesAgainAtMs) this.#makeRoom(nowMs)
    // The system is asked for it.
    const address = addressConnections === 0 ? '' : groupOf(socket.remoteAddress ?? '')
    const refusal = this.#refusalOf(address)
    if (refusal !== undefined) {
      this.#options.refuse(socket, refusal)
      return undefined
    }
    const connection = new ClientConnection(socket, nowMs)
    this.#all.set(socket, connection)
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1)
    socket.once('end', () => connection.probeHalfOpen())
    socket.once('close', () => {
      this.#remove(socket, address)
      connection.closed()
    })
    return connection
  }

  #refusalOf(address: string): CarpoolError | undefined {
    const { maxConnections, addressConnections } = this.#options.limits
    if (this.#all.size >= maxConnections) {
      return new CarpoolError('saturated', `All of the ${maxConnections} connections that there may be are in use.`)
    }
    if (addressConnections === 0 || (this.#byAddress.get(address) ?? 0) < addressConnections) return undefined
    return new CarpoolError('too-many-requests', `An address may have ${addressConnections} connections, not more.`)
  }

  #makeRoom(nowMs: number): void {
    const idle = [...this.#all.values()].filter(
      ({ isIdle, usedAtMs, socket }) => isIdle && socket.readableLength === 0 && nowMs - usedAtMs >= SPARED_MS,
    )
    const count = Math.ceil(this.#options.limits.maxConnections * CLOSED_SHARE)
    const longest = idle.toSorted((a, b) => a.usedAtMs - b.usedAtMs).slice(0, count)
    // Those that were opened first come first: a new one has the time of many to show that it need not yield.
    const yielding = this.#all.values().filter((connection) => connection.yields && !longest.includes(connection))
    longest.push(...yielding.take(count - longest.length))
    if (longest.length < count) this.#searchesAgainAtMs = nowMs + SEARCH_AGAIN_MS
    for (const { socket } of longest) {
      // It closes in a later turn of the event loop, and must not count until then.
      this.#all.delete(socket)
      socket.destroy()
    }
  }

  #remove(socket: Socket, address: string): void {
    this.#all.delete(socket)
    const left = (this.#byAddress.get(address) ?? 1) - 1
    if (left === 0) this.#byAddress.delete(address)
    else this.#byAddress.set(address, left)
  }
}

/** Whose an address is: an IPv4 address, or the 64 bits of an IPv6 address that a network gives to one customer (RFC 6177). */
export function groupOf(address: string): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (!address.includes(':')) return address
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::')
  const front = head === '' ? [] : head.split(':')
  const zeros = tail === undefined ? 0 : 8 - front.length - tail.split(':').filter((part) => part !== '').length
  return [...front, ...Array<string>(zeros).fill('0'), ...(tail ?? '').split(':')].slice(0, 4).join(':')
}
