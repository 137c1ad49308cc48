import { failure, type FailureCode } from './failure.ts'

/** Memory that a fetch holds, out of a share that others draw on as well. */
export interface MemoryLease {
  /** Takes more; false if the share has no more. */
  grow(bytes: number): boolean
}

const FIRST_CAPACITY_BYTES = 4 * 1024
/** As much as a server is given for nothing but its word. */
const MAX_TRUSTED_BYTES = 128 * 1024

/** Puts a body together in memory that grows with it: chunks of one byte take one byte. */
export class BodyBuffer {
  readonly #limitBytes: number
  readonly #lease: MemoryLease
  readonly #tooLarge: FailureCode
  readonly #firstBytes: number
  #bytes = new Uint8Array(0)
  #length = 0

  /** @param announcedBytes how large it is said to be; not believed beyond a little */
  constructor(limitBytes: number, lease: MemoryLease, tooLarge: FailureCode, announcedBytes = 0) {
    this.#firstBytes = Math.max(FIRST_CAPACITY_BYTES, Math.min(announcedBytes, MAX_TRUSTED_BYTES))
    this.#limitBytes = limitBytes
    this.#lease = lease
    this.#tooLarge = tooLarge
  }

  /** @throws failure if it is larger than the limit, or there is no memory for it */
  append(chunk: Uint8Array): void {
    const length = this.#length + chunk.length
    if (length > this.#limitBytes) throw failure(this.#tooLarge)
    if (length > this.#bytes.length) this.#grow(length)
    this.#bytes.set(chunk, this.#length)
    this.#length = length
  }

  /** What it holds, in memory of its own. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = new Uint8Array(this.#bytes.buffer.transfer(this.#length))
    this.#bytes = new Uint8Array(0)
    this.#length = 0
    return taken
  }

  #grow(length: number): void {
    const capacity = Math.min(this.#limitBytes, Math.max(length, this.#firstBytes, this.#bytes.length * 2))
    if (!this.#lease.grow(capacity - this.#bytes.length)) throw failure('memory-full')
    this.#bytes = new Uint8Array(this.#bytes.buffer.transfer(capacity))
  }
}
