import type { SocketEnd } from '@carpool/core'
import type { SocketClosed } from '@carpool/wire'
import type { Account } from '../accounting/account.ts'
import type { Guest } from '../isolates/guest.ts'
import type { Send } from '../send.ts'
import type { Stream, Streams } from './streams.ts'

/** The end of a socket whose runtime sends more than it may. */
const OVERRUN: SocketEnd = { ok: false, code: 'EPROTO', message: 'More was sent than the other side takes.' }

interface OpenSocket {
  /** Its number on the connection. */
  readonly number: number
  readonly guest: Guest
  /** The guest's own number for it. */
  readonly guestSocket: number
  /** What its entries are charged to: that of the invocation that opened it, and the background when this has ended. */
  readonly account: Account
  readonly stream: Stream
}

/** Carries the sockets of guests to the server and back, and counts their bytes. They live until they are closed, or their guest ends. */
export class Sockets {
  readonly #send: Send
  readonly #streams: Streams
  readonly #open = new Map<number, OpenSocket>()
  readonly #byGuest = new Map<Guest, Map<number, OpenSocket>>()
  #last = 0

  constructor(send: Send, streams: Streams) {
    this.#send = send
    this.#streams = streams
  }

  /** @param id public id of the invocation, if the guest runs it */
  start(
    guest: Guest,
    { invocation, id, guestSocket }: { invocation: number; id: string | undefined; guestSocket: number },
    target: string,
  ): void {
    const number = ++this.#last
    const account = guest.accountOf(invocation)
    const overran = (): void => {
      this.stop(guest, guestSocket)
      guest.socketClosed(account, guestSocket, JSON.stringify(OVERRUN), stream)
    }
    const stream = this.#streams.open({ of: 'socket', number, guestNumber: guestSocket, account, listener: { overran } })
    stream.attach(guest)
    const socket = { number, guest, guestSocket, account, stream }
    this.#open.set(number, socket)
    let ofGuest = this.#byGuest.get(guest)
    if (ofGuest === undefined) this.#byGuest.set(guest, (ofGuest = new Map()))
    ofGuest.set(guestSocket, socket)
    this.#send({ type: 'socket-open', socket: number, revision: guest.revision, ...(id !== undefined && { id }) }, target)
  }

  startTls(guest: Guest, guestSocket: number, options: string): void {
    const socket = this.#byGuest.get(guest)?.get(guestSocket)
    if (socket !== undefined) this.#send({ type: 'start-tls', socket: socket.number }, options)
  }

  /** The guest does not need it any more. */
  stop(guest: Guest, guestSocket: number): void {
    const socket = this.#byGuest.get(guest)?.get(guestSocket)
    if (socket !== undefined) this.#stop(socket)
  }

  /** Stops the sockets of guests that are gone. */
  stopOrphans(): void {
    for (const [guest, sockets] of this.#byGuest) if (guest.disposed) for (const socket of sockets.values()) this.#stop(socket)
  }

  connected(number: number, connected: string): void {
    const socket = this.#open.get(number)
    socket?.guest.socketConnected(socket.account, socket.guestSocket, connected, socket.stream)
  }

  closed(number: number, end: string, { bytesOut, bytesIn }: Pick<SocketClosed, 'bytesOut' | 'bytesIn'>): void {
    const socket = this.#open.get(number)
    if (socket === undefined) return
    socket.account.sent(bytesOut)
    socket.account.received(bytesIn)
    this.#remove(socket)
    socket.guest.socketClosed(socket.account, socket.guestSocket, end, socket.stream)
  }

  #stop(socket: OpenSocket): void {
    this.#remove(socket)
    this.#send({ type: 'socket-stop', socket: socket.number })
  }

  #remove({ number, guest, guestSocket, stream }: OpenSocket): void {
    stream.close()
    this.#open.delete(number)
    const ofGuest = this.#byGuest.get(guest)
    ofGuest?.delete(guestSocket)
    if (ofGuest?.size === 0) this.#byGuest.delete(guest)
  }
}
