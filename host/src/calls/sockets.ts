import { MAX_SOCKETS_PER_GUEST, type SocketEnd } from '@carpool/core'
import { NO_BODY } from '@carpool/wire'
import type { Account } from '../accounting/account.ts'
import type { Guest } from '../isolates/guest.ts'
import type { Send } from '../send.ts'
import { FetchPace } from './fetch-pace.ts'
import type { Stream, Streams } from './streams.ts'

/** Longest target or TLS options as JSON, in UTF-16 units: certificates and keys are in them. */
const MAX_HEAD = 512 * 1024

interface SocketsParts {
  readonly send: Send
  readonly streams: Streams
}

/**
 * The sockets of guests, between them and the server. A socket belongs to its guest, and ends with it: all calls of the
 * function share it, whichever of them opened it.
 */
export class Sockets {
  readonly #send: Send
  readonly #streams: Streams
  readonly #open = new Map<number, GuestSocket>()
  readonly #pace = new FetchPace()
  #last = 0

  constructor({ send, streams }: SocketsParts) {
    this.#send = send
    this.#streams = streams
  }

  /** How many are open. */
  get size(): number {
    return this.#open.size
  }

  /** @param id public id of the invocation, if the guest runs it */
  open(
    guest: Guest,
    { invocation, id, guestSocket }: { invocation: number; id: string | undefined; guestSocket: number },
    target: string,
  ): void {
    // The guest's runtime numbers each anew.
    this.stop(guest, guestSocket)
    const number = ++this.#last
    const account = guest.accountOf(invocation)
    const stream = this.#streams.open({
      of: 'socket',
      number,
      guestNumber: guestSocket,
      account,
      listener: {
        moved: () => socket.moved(),
        overran: () => this.#refuse(socket, 'EPROTO', 'More was sent than the other side takes.'),
      },
    })
    const socket = new GuestSocket({ guest, number, guestSocket, account, stream })
    stream.attach(guest)
    guest.hadSockets = true
    if (guest.sockets.size >= MAX_SOCKETS_PER_GUEST) {
      const message = `Too many sockets of the function are open; the limit is ${MAX_SOCKETS_PER_GUEST} at once.`
      return this.#refuse(socket, 'EMFILE', message)
    }
    if (target.length > MAX_HEAD) {
      return this.#refuse(socket, 'EINVAL', `What a socket connects with is longer than the limit of ${MAX_HEAD}.`)
    }
    this.#open.set(number, socket)
    account.socketOpened()
    guest.sockets.set(guestSocket, number)
    const message = { type: 'socket-open', socket: number, revision: guest.revision, ...(id !== undefined && { id }) } as const
    this.#pace.begin(guest.revision, number, () => this.#send(message, target))
  }

  /** An invocation sends by a socket: what comes back is most likely for it. */
  sentBy(guest: Guest, guestSocket: number, invocation: number): void {
    const socket = this.#of(guest, guestSocket)
    if (socket !== undefined) socket.account = guest.accountOf(invocation)
  }

  startTls(guest: Guest, guestSocket: number, options: string): void {
    const socket = this.#of(guest, guestSocket)
    if (socket === undefined) return
    if (options.length > MAX_HEAD) {
      return this.#refuse(socket, 'EINVAL', `The options of TLS are longer than the limit of ${MAX_HEAD}.`)
    }
    const { number, stream } = socket
    stream.inOrder(NO_BODY, () => this.#send({ type: 'start-tls', socket: number }, options))
  }

  /** The guest needs it no more. */
  stop(guest: Guest, guestSocket: number): void {
    const socket = this.#of(guest, guestSocket)
    if (socket !== undefined) this.#stop(socket)
  }

  /** Stops those of guests that are gone. */
  stopOrphans(): void {
    for (const socket of this.#open.values()) if (socket.guest.disposed) this.#stop(socket)
  }

  connected(number: number, info: string): void {
    const socket = this.#open.get(number)
    if (socket === undefined) return
    this.#pace.answered(socket.guest.revision)
    socket.guest.socketConnected(socket.accountNow, socket.guestSocket, info, socket.stream)
  }

  closed(number: number, end: string): void {
    const socket = this.#open.get(number)
    if (socket === undefined) return
    this.#pace.answered(socket.guest.revision)
    this.#tellEnd(socket, end)
  }

  /** Ends one for a reason of its own. */
  #refuse(socket: GuestSocket, code: string, message: string): void {
    if (this.#open.has(socket.number)) this.#stop(socket)
    this.#tellEnd(socket, JSON.stringify({ ok: false, code, message } satisfies SocketEnd))
  }

  #tellEnd(socket: GuestSocket, end: string): void {
    const { guest, guestSocket, stream, accountNow } = socket
    this.#remove(socket)
    guest.socketClosed(accountNow, guestSocket, end, stream)
  }

  #stop(socket: GuestSocket): void {
    const { number, stream } = socket
    this.#remove(socket)
    if (!this.#pace.drop(number)) stream.inOrder(NO_BODY, () => this.#send({ type: 'socket-stop', socket: number }))
  }

  #remove({ number, guest, guestSocket, opener, stream }: GuestSocket): void {
    if (this.#open.delete(number)) opener.socketClosed()
    guest.sockets.delete(guestSocket)
    stream.close()
  }

  #of(guest: Guest, guestSocket: number): GuestSocket | undefined {
    const number = guest.sockets.get(guestSocket)
    return number === undefined ? undefined : this.#open.get(number)
  }
}

interface GuestSocketInit {
  readonly guest: Guest
  readonly number: number
  readonly guestSocket: number
  readonly account: Account
  readonly stream: Stream
}

class GuestSocket {
  readonly guest: Guest
  /** On the connection, */
  readonly number: number
  /** and in the guest. */
  readonly guestSocket: number
  readonly stream: Stream
  /** Whose it is for as long as it is open. */
  readonly opener: Account
  /** Of the invocation that opened it, or that sent by it last. */
  account: Account
  #receivedBytes = 0
  #sentBytes = 0

  constructor({ guest, number, guestSocket, account, stream }: GuestSocketInit) {
    this.guest = guest
    this.number = number
    this.guestSocket = guestSocket
    this.opener = account
    this.account = account
    this.stream = stream
  }

  /**
   * What an entry of it is charged to: the invocation that sent by it last while that runs. Else it is for one of those that
   * run, if any do, and only then the function's background work.
   */
  get accountNow(): Account {
    const { account, guest } = this
    if (account.open === account && account !== guest.background) return account
    return guest.callsUnderWay > 0 ? guest.shared : guest.background
  }

  /** Bytes have come or gone; an entry for them is made next. */
  moved(): void {
    const { stream, accountNow } = this
    stream.account = accountNow
    accountNow.received(stream.receivedBytes - this.#receivedBytes)
    accountNow.sent(stream.sentBytes - this.#sentBytes)
    this.#receivedBytes = stream.receivedBytes
    this.#sentBytes = stream.sentBytes
  }
}
