import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Holder } from '@carpool/core'
import { failure } from './failure.ts'

export interface HandshakeGateParts {
  readonly holder: Holder
  /** Of the peer, until both have agreed on TLS. */
  readonly maxHandshakeBytes: number
  readonly turns: { enter(holder: Holder, step: () => void): void }
}

/**
 * Stands between a connection and its TLS. Node.js would give OpenSSL what has come as soon as it is there, and no JavaScript
 * would see it. Here what a peer says in its handshake is counted, and waits for its turn: to check its certificates may take
 * long. From then on all passes through.
 */
export class HandshakeGate extends Duplex {
  readonly #raw: Socket
  readonly #parts: HandshakeGateParts
  #isReading = false
  #isOpen = false
  #handshakeBytes = 0
  #waiting: Buffer | undefined

  /** @param raw may still connect. Who has the gate destroys it with the gate. */
  constructor(raw: Socket, parts: HandshakeGateParts) {
    // It does not go by itself when both ends have come: its TLS would go with it, and with that what was not read yet. While TLS
    // is paused, nothing gathers here.
    super({ autoDestroy: false, readableHighWaterMark: 0 })
    this.#raw = raw
    this.#parts = parts
    this.once('error', () => this.destroy())
    raw.on('error', (cause) => this.destroy(cause)).once('close', () => this.#rawClosed())
  }

  /** Both have agreed on TLS. */
  open(): void {
    this.#isOpen = true
  }

  override _read(): void {
    const raw = this.#raw
    if (!this.#isReading) {
      this.#isReading = true
      raw.on('data', (bytes: Buffer) => this.#came(bytes)).once('end', () => this.push(null))
    }
    if (this.#waiting === undefined) raw.resume()
  }

  /** What TLS answers behind its own end, to a change of keys for instance, goes nowhere; that is no reason to break off. */
  override write(bytes: unknown, ...rest: unknown[]): boolean {
    if (!this.writableEnded) return super.write(bytes, ...(rest as []))
    const taken = rest.at(-1)
    if (typeof taken === 'function') queueMicrotask(() => taken())
    return true
  }

  override _write(bytes: Uint8Array, _encoding: BufferEncoding, taken: (error?: Error | null) => void): void {
    this.#raw.write(bytes, taken)
  }

  override _writev(pieces: ReadonlyArray<{ readonly chunk: Uint8Array }>, taken: (error?: Error | null) => void): void {
    const raw = this.#raw
    raw.cork()
    pieces.forEach(({ chunk }, index) => raw.write(chunk, index === pieces.length - 1 ? taken : undefined))
    raw.uncork()
  }

  /** All was taken by then. Node.js would stop the process if TLS had to answer something while its end has not left. */
  override _final(left: () => void): void {
    this.#raw.end()
    left()
  }

  override _destroy(cause: Error | null, done: (error: Error | null) => void): void {
    this.#waiting = undefined
    this.#raw.destroy()
    done(cause)
  }

  #came(bytes: Buffer): void {
    if (this.#isOpen) return this.#pass(bytes)
    this.#raw.pause()
    this.#waiting = bytes
    this.#parts.turns.enter(this.#parts.holder, () => this.#step())
  }

  /** OpenSSL takes what has come at once, within the push. */
  #step(): void {
    const bytes = this.#waiting
    this.#waiting = undefined
    // It was ended meanwhile.
    if (bytes === undefined) return
    const room = this.#parts.maxHandshakeBytes - this.#handshakeBytes
    this.#handshakeBytes += bytes.length
    let takesMore = this.push(bytes.subarray(0, room))
    if (this.destroyed) return
    if (bytes.length > room) {
      if (!this.#isOpen) return void this.destroy(failure('handshake-too-large'))
      takesMore = this.push(bytes.subarray(room))
    }
    if (takesMore) this.#raw.resume()
  }

  #pass(bytes: Uint8Array): void {
    if (!this.push(bytes)) this.#raw.pause()
  }

  /** What it has said before its end is still the function's. */
  #rawClosed(): void {
    const { readableEnded, writableFinished } = this.#raw
    if (!readableEnded || !writableFinished) this.destroy()
  }
}
