import http from 'carpool-node:internal/http'
import { Buffer } from 'node:buffer'
import { Duplex } from 'node:stream'

const { kNeedDrain } = http as unknown as { readonly kNeedDrain: symbol }

interface WaitingMessage {
  readonly finished: boolean
  [needsDrain: symbol]: unknown
  emit(name: 'drain'): unknown
}

/** A message of `_http_outgoing`, as far as it has to do with its socket. */
export interface Outgoing {
  _header: string | null
}

/**
 * What a message of `node:http` takes for its connection: it writes head and body to it, as bytes of HTTP/1.1 without chunks, and
 * `take` gets the body. Its other properties are what packages ask of a socket.
 */
export class ExchangeSocket extends Duplex {
  _httpMessage: unknown = null
  connecting = false
  encrypted = false
  authorized = false
  remoteAddress = '127.0.0.1'
  remotePort = 0
  remoteFamily = 'IPv4'
  localAddress = '127.0.0.1'
  localPort = 80
  bytesRead = 0
  bytesWritten = 0
  timeout = 0
  server: unknown = undefined
  readonly #take: (bytes: Buffer, done: () => void) => void
  #message: Outgoing | undefined

  constructor(take: (bytes: Buffer, done: () => void) => void) {
    super({ decodeStrings: false })
    this.#take = take
    // Servers and clients of Node.js do this for their messages.
    this.on('drain', () => {
      const message = this._httpMessage as WaitingMessage | null
      if (message === null || message.finished || message[kNeedDrain] !== true) return
      message[kNeedDrain] = false
      message.emit('drain')
    })
  }

  /** The message whose head is to be left out. */
  carry(message: Outgoing): void {
    this.#message = message
  }

  override _read(): void {}

  override _write(chunk: string | Buffer, encoding: BufferEncoding, done: () => void): void {
    let rest = chunk
    if (typeof rest === 'string') {
      const head = this.#message?._header
      if (head !== undefined && head !== null && rest.startsWith(head)) {
        rest = rest.slice(head.length)
        this.#message = undefined
      } else if (this.#message !== undefined && rest.startsWith('HTTP/1.1 1')) {
        // Early hints and the like have no way to the client.
        rest = ''
      }
      rest = Buffer.from(rest, encoding)
    }
    this.bytesWritten += rest.length
    this.#take(rest, done)
  }

  override _final(done: () => void): void {
    done()
  }

  setTimeout(timeout: number, callback?: () => void): this {
    this.timeout = timeout
    if (callback !== undefined) this.once('timeout', callback)
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
  address(): object {
    return { address: this.localAddress, family: 'IPv4', port: this.localPort }
  }
  destroySoon(): void {
    this.end()
  }
}
