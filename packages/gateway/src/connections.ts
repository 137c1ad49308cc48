import type { Socket } from 'node:net'
import { CarpoolError, type Clock } from '@carpool/core'
import { ClientConnection } from './client-connection.ts'
import type { GatewayLimits } from './gateway-limits.ts'

export interface ConnectionsOptions {
  readonly limits: Pick<GatewayLimits, 'maxConnections' | 'addressConnections'>
  readonly clock: Clock
  /** Answers a connection that is one too many, and closes it. */
  readonly refuse: (socket: Socket, error: CarpoolError) => void
}

/** One that was used this lately is not closed for another, in ms: its client is about to use it again. */
const SPARED_MS = 1000
/** How many are closed at a time, as a share of all: to look for them takes longer than to close them. */
const CLOSED_SHARE = 0.01
/** When there were not that many to close, how long none are looked for, in ms: whoever is refused must not cost a look at all of them. */
const LOOK_AGAIN_MS = 100

/**
 * The connections of clients. When there are as many as there may be, those that have been idle for longest make room for new ones: clients
 * keep connections for later, and open new ones when they find them closed. So who opens connections and sends nothing keeps nobody out.
 */
export class Connections {
  readonly #options: ConnectionsOptions
  readonly #all = new Map<Socket, ClientConnection>()
  readonly #byAddress = new Map<string, number>()
  #looksAgainAtMs = -Infinity

  constructor(options: ConnectionsOptions) {
    this.#options = options
  }

  /** Undefined if it was refused or is closed. */
  of(socket: Socket): ClientConnection | undefined {
    return this.#all.get(socket)
  }

  /** A client has connected. @returns undefined if it was refused */
  opened(socket: Socket): ClientConnection | undefined {
    const { maxConnections } = this.#options.limits
    const nowMs = this.#options.clock()
    if (this.#all.size >= maxConnections && nowMs >= this.#looksAgainAtMs) this.#makeRoom(nowMs)
    const address = groupOf(socket.remoteAddress ?? '')
    const refusal = this.#refusalOf(address)
    if (refusal !== undefined) {
      this.#options.refuse(socket, refusal)
      return undefined
    }
    const connection = new ClientConnection(socket, nowMs)
    this.#all.set(socket, connection)
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1)
    socket.once('close', () => {
      this.#closed(socket, address)
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
    const idle = [...this.#all.values()].filter(({ isIdle, usedAtMs }) => isIdle && nowMs - usedAtMs >= SPARED_MS)
    const count = Math.ceil(this.#options.limits.maxConnections * CLOSED_SHARE)
    const longest = idle.toSorted((a, b) => a.usedAtMs - b.usedAtMs).slice(0, count)
    if (longest.length < count) this.#looksAgainAtMs = nowMs + LOOK_AGAIN_MS
    for (const { socket } of longest) {
      // It is closed in a later turn of the event loop, and must not count until then.
      this.#all.delete(socket)
      socket.destroy()
    }
  }

  #closed(socket: Socket, address: string): void {
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
