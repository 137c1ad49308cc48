import type { Holder, SocketEnd } from '@carpool/core'
import { failure } from './failure.ts'
import type { ByteTally, FromThread, SocketRequest } from './messages.ts'
import type { Outside } from './outside.ts'
import { describeSocketEnd } from './socket-end.ts'
import { parseSocketTarget } from './socket-target.ts'
import { TcpStream, type SocketPost } from './tcp-stream.ts'
import { WebSocketStream } from './web-socket-stream.ts'

export type SocketStream = TcpStream | WebSocketStream

interface OpenSocket {
  readonly holder: Holder
  readonly stream: SocketStream
}

const NOTHING = { bytesOut: 0, bytesIn: 0 }

/** The sockets of functions, by number: they are begun and stopped by turns, like fetches. */
export class Sockets {
  readonly #outside: Outside
  readonly #put: (item: FromThread, bytes?: Uint8Array) => void
  readonly #open = new Map<number, OpenSocket>()
  readonly #ofFunction = new Map<string, number>()

  constructor(outside: Outside, put: (item: FromThread, bytes?: Uint8Array) => void) {
    this.#outside = outside
    this.#put = put
  }

  open(number: number, request: SocketRequest): void {
    const { functionName, owner } = request
    // The request has texts that are not needed for as long.
    const holder = { functionName, owner }
    const before = this.#ofFunction.get(functionName) ?? 0
    try {
      if (before >= this.#outside.limits.maxSocketsPerFunction) throw failure('sockets-full')
      const stream = this.#create(number, request.target, holder)
      this.#ofFunction.set(functionName, before + 1)
      this.#open.set(number, { holder, stream })
    } catch (cause) {
      const end = describeSocketEnd(cause, '', this.#outside.limits)
      return this.#put({ kind: 'closed', number, end: JSON.stringify(end), ...NOTHING })
    }
    // It may be stopped meanwhile.
    this.#outside.turns.enter(holder, () => void this.find(number)?.open(request))
  }

  find(number: number): SocketStream | undefined {
    return this.#open.get(number)?.stream
  }

  stop(number: number): void {
    const open = this.#open.get(number)
    if (open !== undefined) this.#outside.turns.enter(open.holder, () => open.stream.stop())
  }

  #create(number: number, text: string, holder: Holder): SocketStream {
    const target = parseSocketTarget(text)
    const post: SocketPost = {
      connected: (connected) => this.#put({ kind: 'connected', number, connected }),
      data: (part) => this.#put({ kind: 'data', number, part }, part.bytes),
      credit: (bytes) => this.#put({ kind: 'credit', number, bytes }),
      closed: (end, bytes) => this.#end(number, end, bytes),
    }
    if (target.kind === 'websocket') return new WebSocketStream(this.#outside, target, holder, post)
    return new TcpStream(this.#outside, target, holder, post)
  }

  #end(number: number, end: SocketEnd, bytes: ByteTally): void {
    const open = this.#open.get(number)
    if (open === undefined) return
    this.#open.delete(number)
    const { functionName } = open.holder
    const left = (this.#ofFunction.get(functionName) ?? 1) - 1
    if (left === 0) this.#ofFunction.delete(functionName)
    else this.#ofFunction.set(functionName, left)
    this.#put({ kind: 'closed', number, end: JSON.stringify(end), ...bytes })
  }
}
