import { IncomingMessage } from '@carpool/core/node-http'
import { pauseReading } from './stop-reading.ts'

/** A chunk of this size costs no more to pass on than to copy. */
const SMALL_BYTES = 1024
/** So many small chunks of a body are passed on as they come: most bodies have no more. */
const FIRST_CHUNKS = 16
/** Chunks that are joined at a time. */
const MOST_JOINED = 256

/**
 * The class of requests whose small chunks are passed on together, once for each turn of the event loop: a read of 64 KiB holds
 * ten thousand chunks of a byte, and what Node.js does to pass one on costs as much as its parser.
 */
export const JoinsSmallChunks: typeof IncomingMessage = class extends IncomingMessage {
  #smallChunks = 0
  /** Of this turn. */
  #chunks: Buffer[] | undefined

  override push(chunk: Buffer | null): boolean {
    if (chunk === null || chunk.length >= SMALL_BYTES) {
      this.#passOn()
      return super.push(chunk)
    }
    if (this.#smallChunks < FIRST_CHUNKS) {
      this.#smallChunks++
      return super.push(chunk)
    }
    if (this.#chunks === undefined) {
      this.#chunks = []
      setImmediate(() => {
        // As Node.js does for a chunk that comes alone; it reads on when the body is read.
        if (!this.#passOn()) pauseReading(this.socket)
        this.#chunks = undefined
      })
    }
    return this.#chunks.push(chunk) < MOST_JOINED || this.#passOn()
  }

  #passOn(): boolean {
    const chunks = this.#chunks
    if (chunks === undefined || chunks.length === 0) return true
    return super.push(Buffer.concat(chunks.splice(0)))
  }
}
