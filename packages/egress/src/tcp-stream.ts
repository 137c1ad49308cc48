import { isIP } from 'node:net'
import type { Holder, SocketEnd } from '@carpool/core'
import type { ConnectionSlot } from './connection-slots.ts'
import { failure } from './failure.ts'
import { hasHost } from './host-list.ts'
import { Inflow } from './inflow.ts'
import type { ByteTally, SocketRequest, StreamPart, StreamSide } from './messages.ts'
import { Outflow } from './outflow.ts'
import type { Outside } from './outside.ts'
import { PeerSocket } from './peer-socket.ts'
import { describeSocketEnd } from './socket-end.ts'
import { parseTlsOptions, type TcpTarget } from './socket-target.ts'

/** Where what is said of a socket goes. */
export interface SocketPost {
  connected(text: string): void
  data(part: StreamPart): void
  credit(bytes: number): void
  closed(end: SocketEnd, bytes: ByteTally): void
}

/** A raw TCP or TLS connection of a function. */
export class TcpStream {
  readonly #outside: Outside
  readonly #target: TcpTarget
  readonly #post: SocketPost
  readonly #inflow: Inflow
  readonly #outflow: Outflow
  readonly #ending = new AbortController()
  readonly #shownHost: string
  #slot: ConnectionSlot | undefined
  #peer: PeerSocket | undefined
  #timer: NodeJS.Timeout | undefined
  #isStopped = false
  #isClosed = false

  constructor(outside: Outside, target: TcpTarget, holder: Holder, post: SocketPost) {
    this.#outside = outside
    this.#target = target
    this.#post = post
    const { memory, reads: turns } = outside
    this.#shownHost = `${bracketed(target.host)}:${target.port}`
    this.#inflow = new Inflow({
      holder,
      memory,
      turns,
      source: { pause: () => this.#peer?.pause(), resume: () => this.#peer?.resume() },
      post: (part) => post.data(part),
    })
    this.#outflow = new Outflow({
      holder,
      memory,
      write: (bytes, taken) => this.#peer?.write(bytes, taken),
      end: () => this.#peer?.end(),
      credit: (bytes) => post.credit(bytes),
    })
  }

  /** Waits for a connection, and makes it. */
  async open({ functionName, owner, hosts }: SocketRequest): Promise<void> {
    const { limits, slots } = this.#outside
    const { host, port, timeoutMs = Number.POSITIVE_INFINITY } = this.#target
    const { signal } = this.#ending
    try {
      if (hosts !== undefined && !hasHost(hosts, bracketed(host), String(port))) throw failure('host-not-listed')
      this.#timer = setTimeout(
        () => this.fail(failure(this.#slot === undefined ? 'wait-timed-out' : 'timed-out')),
        Math.min(timeoutMs, limits.totalTimeoutMs),
      )
      const slot = await slots.take({ functionName, owner, origin: `tcp://${this.#shownHost}` }, signal)
      if (signal.aborted) return slot.release()
      this.#slot = slot
      this.#outside.pool.makeRoom()
      this.#outside.sockets += 1
      this.#connect()
    } catch (cause) {
      this.#close(cause as Error)
    }
  }

  startTls(text: string): void {
    try {
      const options = parseTlsOptions(text)
      if (this.#peer?.isPlain !== true) throw failure('not-connected')
      this.#outflow.hold()
      this.#peer.startTls(options)
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
    if (side === 'received') return this.#inflow.discard()
    this.#isStopped = true
    if (this.#peer === undefined) this.stop()
    else this.#peer.reset()
  }

  /** The function needs it no more. */
  stop(): void {
    this.#isStopped = true
    this.fail(failure('aborted'))
  }

  fail(cause: Error): void {
    if (this.#peer !== undefined) return this.#peer.destroy(cause)
    this.#ending.abort(cause)
    this.#close(cause)
  }

  #connect(): void {
    const { connect, limits } = this.#outside
    this.#peer = new PeerSocket(this.#target, {
      connect,
      tlsTimeoutMs: limits.connectTimeoutMs,
      events: {
        connected: (socket) => {
          clearTimeout(this.#timer)
          this.#post.connected(JSON.stringify(socket))
          this.#outflow.start()
        },
        data: (bytes) => this.#inflow.push(bytes),
        ended: () => this.#inflow.end(),
        closed: (cause) => this.#close(cause),
      },
    })
  }

  #close(cause: Error | undefined): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#inflow.close()
    this.#outflow.close()
    if (this.#slot !== undefined) this.#outside.sockets -= 1
    this.#slot?.release()
    const isWell = cause === undefined || this.#isStopped
    const end: SocketEnd = isWell ? { ok: true } : describeSocketEnd(cause, this.#shownHost, this.#outside.limits)
    this.#post.closed(end, { bytesOut: this.#outflow.bytesOut, bytesIn: this.#inflow.bytesIn })
  }
}

function bracketed(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host
}
