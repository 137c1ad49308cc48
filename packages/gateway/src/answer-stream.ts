import type { ServerResponse } from 'node:http'
import { freeBytes, type AnswerSink } from '@carpool/core'
import type { Reservation } from './byte-budget.ts'
import type { WriteStallOptions } from './hardening/slow-clients.ts'

/** What is with the system at a time, so that it shows whether the client takes any of it. */
const WRITING_BYTES = 64 * 1024
/** Up to this size, a copy costs less than to keep the frame of which it is a view. */
const MAX_COPIED_BYTES = 16 * 1024
/** Credit is given in pieces of this size: one message for each event of a stream would cost as much as the event. */
const CREDIT_BYTES = 64 * 1024

/**
 * The body of an answer that streams, on its way to the client. What the client has not taken waits here, no more than the
 * window of a stream, for only what it has taken is credited.
 */
export class ClientAnswer implements AnswerSink {
  readonly #response: ServerResponse
  readonly #options: WriteStallOptions
  readonly #credit: (bytes: number) => void
  /** What is still to come of an announced length. */
  #leftBytes: number
  readonly #queue: Array<Uint8Array | string> = []
  /** In the queue, or with the system. */
  #waitingBytes = 0
  #writingBytes = 0
  #uncreditedBytes = 0
  #flushedBytes = 0
  #onEnd: (() => void) | undefined
  #isWatched = false
  #lookedAtBytes = 0
  #progressAtMs = 0
  #reservation: Reservation | undefined
  #countedBytes = 0

  /**
   * @param response its head is written
   * @param lengthBytes that its head announces, if it does
   */
  constructor(
    response: ServerResponse,
    lengthBytes: number | undefined,
    credit: (bytes: number) => void,
    options: WriteStallOptions,
  ) {
    this.#response = response
    this.#leftBytes = lengthBytes ?? Number.POSITIVE_INFINITY
    this.#credit = credit
    this.#options = options
  }

  write(bytes: Uint8Array): void {
    if (this.#response.destroyed) return
    this.#leftBytes -= bytes.length
    this.#waitingBytes += bytes.length
    this.#queue.push(ownCopy(bytes))
    this.#writeOn()
    this.#watch()
  }

  /** The body is whole, and on record. @param onEnd ends the response; called when all of the body was written */
  end(onEnd: () => void): void {
    this.#onEnd = onEnd
    this.#writeOn()
  }

  /** It breaks off: the client must see that the body is not whole. */
  break(): void {
    this.#queue.length = 0
    const { socket, req } = this.#response
    // Over HTTP/1.0 the end of the connection is that of a body.
    if (req.httpVersionMinor === 0) socket?.resetAndDestroy()
    this.#cut()
  }

  /** The answer to an earlier request on its connection is still to be written. */
  get #waitsItsTurn(): boolean {
    return this.#response.socket === null
  }

  /** Destroys the answer with its connection, which one that waits its turn has only then. */
  #cut(): void {
    if (this.#waitsItsTurn) this.#response.once('socket', (socket) => socket.destroy())
    this.#response.destroy()
  }

  #writeOn(): void {
    if (this.#response.destroyed) return
    // The end of an announced body is the end of the answer, which leaves only once it is on record.
    const mayBeLast = this.#onEnd !== undefined || this.#leftBytes > 0
    while (this.#queue.length > (mayBeLast ? 0 : 1) && this.#writingBytes < WRITING_BYTES) {
      const piece = this.#queue.shift()!
      const { length } = piece
      this.#writingBytes += length
      const onWritten = (error?: Error | null): void => {
        if (!error && typeof piece !== 'string') freeBytes(piece)
        this.#written(length, error)
      }
      if (typeof piece === 'string') this.#response.write(piece, 'latin1', onWritten)
      else this.#response.write(piece, onWritten)
    }
    if (this.#queue.length > 0) return
    this.#onEnd?.()
    this.#onEnd = undefined
  }

  #written(bytes: number, error: Error | null | undefined): void {
    if (error) return
    this.#writingBytes -= bytes
    this.#waitingBytes -= bytes
    this.#flushedBytes += bytes
    this.#uncreditedBytes += bytes
    if (this.#uncreditedBytes >= CREDIT_BYTES) {
      this.#credit(this.#uncreditedBytes)
      this.#uncreditedBytes = 0
    }
    if (this.#queue.length > 0) this.#writeOn()
  }

  /** Looks after what waits until nothing does. */
  #watch(): void {
    if (this.#isWatched) return
    this.#isWatched = true
    this.#progressAtMs = this.#options.clock()
    this.#options.sweep.add(this.#check)
  }

  readonly #check = (nowMs: number): boolean => {
    const { budget, timeoutMs } = this.#options
    // Node.js does not destroy one that waits its turn once another protocol was asked for behind it.
    if (this.#waitingBytes === 0 || this.#response.destroyed || this.#response.req.socket.destroyed) {
      this.#reservation?.release()
      this.#reservation = undefined
      this.#countedBytes = 0
      this.#isWatched = false
      return true
    }
    this.#reservation ??= budget.open(() => this.#cut())
    this.#reservation.add(this.#waitingBytes - this.#countedBytes)
    this.#countedBytes = this.#waitingBytes
    if (this.#flushedBytes !== this.#lookedAtBytes || this.#waitsItsTurn) {
      this.#lookedAtBytes = this.#flushedBytes
      this.#progressAtMs = nowMs
    } else if (nowMs - this.#progressAtMs >= timeoutMs) this.#cut()
    return false
  }
}

/** Small bytes as text of one byte a character, which Node.js writes together with what stands around them. */
function ownCopy(bytes: Uint8Array): Uint8Array | string {
  if (bytes.length <= MAX_COPIED_BYTES) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
  return bytes.length * 4 < bytes.buffer.byteLength ? new Uint8Array(bytes) : bytes
}
