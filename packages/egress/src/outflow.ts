import { STREAM_WINDOW_BYTES, type Holder } from '@carpool/core'
import { failure } from './failure.ts'
import type { StreamMemory } from './stream-memory.ts'

export interface OutflowParts {
  readonly holder: Holder
  readonly memory: StreamMemory
  /** Writes to the peer; `taken` is called when the system has taken all of it. */
  readonly write: (bytes: Uint8Array, taken: () => void) => void
  /** Nothing more is written. */
  readonly end: () => void
  readonly credit: (bytes: number) => void
}

const NO_BYTES = new Uint8Array(0)
/** Credit is given in steps of so much: a credit for each small write would cost more than the write. */
const CREDIT_BYTES = STREAM_WINDOW_BYTES / 4

/** What a function sends to a peer. What comes while the system still has some of it is written together. */
export class Outflow {
  /** All that the system has taken, in bytes. */
  bytesOut = 0
  readonly #parts: OutflowParts
  #waiting: Uint8Array = NO_BYTES
  #waitingBytes = 0
  #writingBytes = 0
  #uncredited = 0
  #whenTaken: (() => void) | undefined
  #isStarted = false
  #isEnding = false
  #isClosed = false

  constructor(parts: OutflowParts) {
    this.#parts = parts
  }

  /** The peer is there: what came before is written. */
  start(): void {
    this.#isStarted = true
    this.#writeOn()
  }

  /**
   * What comes from here on waits for {@link start}.
   * @param whenTaken called once the system has taken all that came before
   */
  hold(whenTaken: () => void): void {
    this.#whenTaken = whenTaken
    this.#write()
    this.#isStarted = false
    this.#tellTaken()
  }

  /** @throws failure if it is more than there is room or memory for */
  receive(bytes: Uint8Array): void {
    if (this.#isClosed || this.#isEnding || bytes.length === 0) return
    const { holder, memory } = this.#parts
    const waitingBytes = this.#waitingBytes + bytes.length
    if (waitingBytes + this.#writingBytes + this.#uncredited > STREAM_WINDOW_BYTES) throw failure('window-overrun')
    if (!memory.tryTake(holder, bytes.length)) throw failure('memory-full')
    if (this.#waitingBytes === 0) {
      this.#waiting = bytes
    } else {
      if (waitingBytes > this.#waiting.length) this.#grow(waitingBytes)
      this.#waiting.set(bytes, this.#waitingBytes)
    }
    this.#waitingBytes = waitingBytes
    this.#writeOn()
  }

  /** Whether the function sends no more. */
  get isEnding(): boolean {
    return this.#isEnding
  }

  /** The function sends no more. */
  end(): void {
    this.#isEnding = true
    this.#writeOn()
  }

  /** Gives back what it holds. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#parts.memory.give(this.#parts.holder, this.#waitingBytes + this.#writingBytes)
    this.#waiting = NO_BYTES
    this.#waitingBytes = 0
    this.#writingBytes = 0
  }

  #writeOn(): void {
    if (!this.#isStarted || this.#isClosed || this.#writingBytes > 0) return
    if (this.#waitingBytes === 0) {
      if (this.#isEnding) this.#parts.end()
      return
    }
    this.#write()
  }

  #write(): void {
    if (this.#waitingBytes === 0) return
    const bytes = this.#waiting.subarray(0, this.#waitingBytes)
    this.#writingBytes += bytes.length
    this.#waiting = NO_BYTES
    this.#waitingBytes = 0
    this.#parts.write(bytes, () => this.#taken(bytes.length))
  }

  #taken(bytes: number): void {
    this.bytesOut += bytes
    if (this.#isClosed) return
    this.#writingBytes -= bytes
    this.#parts.memory.give(this.#parts.holder, bytes)
    this.#uncredited += bytes
    if (this.#uncredited >= CREDIT_BYTES) {
      this.#parts.credit(this.#uncredited)
      this.#uncredited = 0
    }
    this.#tellTaken()
    this.#writeOn()
  }

  #tellTaken(): void {
    const whenTaken = this.#whenTaken
    if (whenTaken === undefined || this.#writingBytes > 0) return
    this.#whenTaken = undefined
    whenTaken()
  }

  #grow(bytes: number): void {
    const capacity = Math.min(STREAM_WINDOW_BYTES, Math.max(bytes, this.#waiting.length * 2))
    const grown = new Uint8Array(capacity)
    grown.set(this.#waiting.subarray(0, this.#waitingBytes))
    this.#waiting = grown
  }
}
