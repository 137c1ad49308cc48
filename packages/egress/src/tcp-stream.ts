import { isIP } from 'node:net'
import type { Holder, SocketEnd } from '@carpool/core'
import { failure } from './failure.ts'
import { Inflow } from './inflow.ts'
import type { ByteTally, SocketRequest, StreamPart, StreamSide } from './messages.ts'
import { Opening } from './opening.ts'
import { Outflow } from './outflow.ts'
import type { Outside } from './outside.ts'
import { PeerSocket } from './peer-socket.ts'
import { describeSocketEnd } from './socket-end.ts'
import { parseTlsOptions, type TcpTarget } from './socket-target.ts'
import type { ReadyTls, TlsClaim } from './tls-contexts.ts'

/** Where what is said of a socket goes. */
export interface SocketPost {
  connected(text: string): void
  data(part: StreamPart): void
  credit(bytes: number): void
  closed(end: SocketEnd, bytes: ByteTally): void
}

/** How long a peer gets to take what was sent by a socket that the function needs no more, in ms. */
const LEAVING_MS = 30_000

/** A raw TCP or TLS connection of a function. */
export class TcpStream {
  readonly #outside: Outside
  readonly #target: Omit<TcpTarget, 'tls'>
  readonly #holder: Holder
  readonly #post: SocketPost
  readonly #inflow: Inflow
  readonly #outflow: Outflow
  readonly #opening: Opening
  readonly #shownHost: string
  #tls: TlsClaim | undefined
  /** While there is a connection. */
  #peer: PeerSocket | undefined
  #hasPeerClosed = false
  /** All that the function sent, and its end. */
  #haveAllLeft = false
  #leaving: NodeJS.Timeout | undefined
  #isStopped = false
  #isClosed = false

  /** @throws failure if there is no memory for its certificates */
  constructor(outside: Outside, { tls, ...target }: TcpTarget, holder: Holder, post: SocketPost) {
    this.#outside = outside
    this.#target = target
    this.#holder = holder
    if (tls !== undefined) this.#tls = outside.tls.claim(holder, tls)
    this.#post = post
    this.#opening = new Opening(outside)
    const { memory, reads: turns } = outside
    this.#shownHost = `${bracketed(target.host)}:${target.port}`
    this.#inflow = new Inflow({
      holder,
      memory,
      turns,
      source: { pause: () => this.#peer?.pause(), resume: () => this.#peer?.resume() },
      post: (part) => {
        post.data(part)
        if (part.end === true && this.#hasPeerClosed) this.#close(undefined)
      },
    })
    this.#outflow = new Outflow({
      holder,
      memory,
      write: (bytes, taken) => this.#peer?.write(bytes, taken),
      end: () => this.#peer?.end(() => this.#allLeft()),
      credit: (bytes) => post.credit(bytes),
    })
  }

  /** Waits for a connection, and makes it. It is called in a turn of the owner, of which certificates take some. */
  async open(request: SocketRequest): Promise<void> {
    const { host, port, timeoutMs } = this.#target
    const target = { hostname: bracketed(host), port: String(port), scheme: 'tcp', timeoutMs } as const
    try {
      const tls = this.#tls?.make()
      await this.#opening.wait(request, target, (cause) => this.fail(cause))
      this.#connect(tls)
    } catch (cause) {
      this.#close(cause as Error)
    }
  }

  startTls(text: string): void {
    try {
      const options = parseTlsOptions(text)
      if (this.#peer?.isPlain !== true) throw failure('not-connected')
      this.#peer.awaitTls()
      // They would come behind the news that TLS is spoken, and be taken for what came by it.
      if (this.#inflow.hasWaiting) throw failure('plain-before-tls')
      // A connection that has taken only a part of what was sent plain would send the rest of it between records of TLS.
      this.#tls = this.#outside.tls.claim(this.#holder, options)
      this.#outflow.hold(() => this.#outside.turns.enter(this.#holder, () => this.#secure()))
    } catch (cause) {
      this.fail(cause as Error)
    }
  }

  #secure(): void {
    if (this.#peer === undefined || this.#isClosed) return
    try {
      this.#peer.startTls(this.#tls!.make())
    } catch (cause) {
      this.fail(cause as Error)
    }
  }

  receive({ bytes, end }: StreamPart): void {
    try {
      this.#outflow.receive(bytes)
      if (end === true) this.#outflow.end()
    } catch (cause) {
      this.fail(cause as Error)
    }
  }

  credit(bytes: number): void {
    this.#inflow.credit(bytes)
  }

  abort(side: StreamSide): void {
    if (side === 'received') {
      this.#inflow.discard()
      // Its end was to be that of what waited.
      if (this.#hasPeerClosed) this.#close(undefined)
      return
    }
    this.#isStopped = true
    if (this.#peer === undefined) this.stop()
    else this.#peer.reset()
  }

  /** The function needs it no more. What it sent before an end still leaves, as it would by a socket of the system. */
  stop(): void {
    this.#isStopped = true
    if (this.#peer === undefined || !this.#outflow.isEnding || this.#haveAllLeft) return this.fail(failure('aborted'))
    this.#inflow.discard()
    this.#leaving ??= setTimeout(() => this.fail(failure('aborted')), LEAVING_MS)
  }

  fail(cause: Error): void {
    if (this.#peer !== undefined) return this.#peer.destroy(cause)
    this.#opening.stop(cause)
    this.#close(cause)
  }

  #connect(tls: ReadyTls | undefined): void {
    const { connect, secure, limits } = this.#outside
    this.#peer = new PeerSocket(
      { ...this.#target, tls },
      {
        holder: this.#holder,
        connect,
        secure,
        tlsTimeoutMs: limits.connectTimeoutMs,
        events: {
          connected: (socket) => {
            this.#opening.done()
            this.#post.connected(JSON.stringify(socket))
            this.#outflow.start()
          },
          data: (bytes) => this.#inflow.push(bytes),
          ended: () => this.#inflow.end(),
          closed: (cause) => this.#peerClosed(cause),
        },
      },
    )
  }

  #allLeft(): void {
    this.#haveAllLeft = true
    if (this.#isStopped) this.fail(failure('aborted'))
  }

  /** A function that reads slowly still gets what had come, and the end. */
  #peerClosed(cause: Error | undefined): void {
    this.#peer = undefined
    this.#hasPeerClosed = true
    this.#opening.close()
    if (cause !== undefined || this.#isStopped || !this.#inflow.hasWaiting) this.#close(cause)
  }

  #close(cause: Error | undefined): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#leaving)
    this.#opening.close()
    this.#inflow.close()
    this.#outflow.close()
    this.#tls?.release()
    const isWell = cause === undefined || this.#isStopped
    const end: SocketEnd = isWell ? { ok: true } : describeSocketEnd(cause, this.#shownHost, this.#outside.limits)
    this.#post.closed(end, { bytesOut: this.#outflow.bytesOut, bytesIn: this.#inflow.bytesIn })
  }
}

function bracketed(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host
}
