import type { IncomingMessage, ServerResponse } from 'node:http'
import { CarpoolError, type Upload, type UploadTaker } from '@carpool/core'
import type { Reservation } from './byte-budget.ts'
import { ByteQueue } from './byte-queue.ts'
import type { ClientConnection } from './hardening/connections.ts'
import { pauseReading } from './hardening/stop-reading.ts'
import { bodyTimeMs, tooManyBuffered, tooSlow, type BodyReaderOptions } from './request-body.ts'
import { expectsContinue } from './request.ts'

/** A client's connection is not read while so much of its body is held. */
const HIGH_BYTES = 128 * 1024
const NO_TAKER: UploadTaker = { isWanted: false, readable: () => {} }

/** A request whose body streams. */
export interface StreamingRequest {
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  readonly connection: ClientConnection
}

/**
 * The body of a request that streams. It is read as far as the function takes it, and a little ahead: while that is held, the
 * client's connection is not read. The time that a client has for its body runs only while the function waits for more.
 */
export class RequestStream implements Upload {
  readonly #request: StreamingRequest
  readonly #options: BodyReaderOptions
  readonly #onBroken: (error: CarpoolError) => void
  readonly #held = new ByteQueue()
  #heldReservation: Reservation | undefined
  #countedBytes = 0
  #taker = NO_TAKER
  #receivedBytes = 0
  #why = ''
  /** It has ended or broken off, or nobody takes the rest. */
  #isOver = false
  #isTold = false
  /** How long the function has waited for the client, in ms. */
  #waitedMs = 0
  #lookedAtMs = 0

  /** @param onBroken told why the body broke off, behind what the function learns of it */
  constructor(request: StreamingRequest, options: BodyReaderOptions, onBroken: (error: CarpoolError) => void) {
    this.#request = request
    this.#options = options
    this.#onBroken = onBroken
    const { incoming, connection } = request
    connection.body = this
    // Also while its call waits for a host: Node.js would keep each small chunk by itself.
    connection.socket.on('resume', this.#holdUp)
    const onLeft = (): void => this.fail(new CarpoolError('bad-request', 'The connection ended before the request body did.'))
    incoming
      .on('data', (chunk: Buffer) => this.#receive(chunk))
      .on('end', () => this.#complete())
      .on('error', onLeft)
      .on('close', onLeft)
  }

  get takenBytes(): number {
    return this.#receivedBytes - this.#held.bytes
  }

  get state(): 'open' | 'ended' | 'broken' {
    if (this.#why !== '') return 'broken'
    return this.#isOver && this.#held.bytes === 0 ? 'ended' : 'open'
  }

  get why(): string {
    return this.#why
  }

  open(taker: UploadTaker): void {
    const { incoming, response } = this.#request
    this.#taker = taker
    // Only now: a client must not send a body that is refused.
    if (expectsContinue(incoming) && !this.#isOver) response.writeContinue()
    const { sweep, clock } = this.#options
    this.#lookedAtMs = clock()
    if (!this.#isOver) sweep.add(this.#check)
    taker.readable()
    this.#count()
  }

  take(mostBytes: number): Uint8Array | undefined {
    const before = this.#held.bytes
    const bytes = this.#held.take(mostBytes)
    if (before >= HIGH_BYTES && this.#held.bytes < HIGH_BYTES) this.#request.connection.socket.resume()
    if (this.#countedBytes > 0) this.#count()
    return bytes
  }

  stop(): void {
    if (this.#isOver && this.#held.bytes === 0) return
    this.#end()
    this.#held.clear()
    this.#count()
    const { incoming } = this.#request
    incoming.removeAllListeners('data')
    // What is parsed already goes nowhere; of the rest nothing more is read.
    if (incoming.complete) incoming.resume()
    else incoming.pause()
  }

  /**
   * The client sends nothing more that can be read, or takes too long. Does nothing once the body is whole, or nobody takes it.
   */
  fail(error: CarpoolError): void {
    if (this.#isOver) return
    this.#why = error.message
    this.stop()
    this.#taker.readable()
    this.#onBroken(error)
  }

  #receive(chunk: Buffer): void {
    this.#receivedBytes += chunk.length
    this.#held.push(chunk)
    if (this.#held.bytes >= HIGH_BYTES) pauseReading(this.#request.connection.socket)
    this.#tell()
  }

  #complete(): void {
    if (this.#isOver) return
    this.#end()
    this.#tell()
  }

  /** All that one turn brings is passed on together: Node.js has a turn of its own for each chunk, but for immediates. */
  #tell(): void {
    if (this.#isTold) return
    this.#isTold = true
    setImmediate(() => {
      this.#isTold = false
      this.#taker.readable()
      this.#count()
    })
  }

  #end(): void {
    const { connection } = this.#request
    this.#isOver = true
    this.#options.sweep.remove(this.#check)
    connection.socket.off('resume', this.#holdUp)
    if (connection.body === this) connection.body = undefined
    if (this.#held.bytes >= HIGH_BYTES) connection.socket.resume()
  }

  /** What is held counts, from when it was not taken at once. */
  #count(): void {
    const { bytes } = this.#held
    if (bytes === 0) {
      this.#heldReservation?.release()
      this.#heldReservation = undefined
    } else {
      const { budget, limits } = this.#options
      this.#heldReservation ??= budget.open(() => this.fail(tooManyBuffered(limits.maxBufferedBytes)))
      this.#heldReservation.add(bytes - this.#countedBytes)
    }
    this.#countedBytes = this.#held.bytes
  }

  /** Others resume connections too: Node.js when it wants more of a body, and ReadTurns. */
  readonly #holdUp = (): void => {
    if (this.#held.bytes >= HIGH_BYTES) pauseReading(this.#request.connection.socket)
  }

  readonly #check = (nowMs: number): boolean => {
    const passedMs = nowMs - this.#lookedAtMs
    this.#lookedAtMs = nowMs
    if (!this.#taker.isWanted || this.#held.bytes > 0) return false
    this.#waitedMs += passedMs
    const { limits } = this.#options
    if (this.#waitedMs < bodyTimeMs(this.#receivedBytes, limits)) return false
    this.fail(tooSlow(this.#receivedBytes, limits))
    return true
  }
}
