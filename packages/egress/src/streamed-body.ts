import { STREAM_PART_BYTES } from '@carpool/core'
import { failure } from './failure.ts'
import type { Inflow, Source } from './inflow.ts'
import type { BodyTarget, MemoryLease } from './response-body.ts'

export interface StreamedBodyParts {
  readonly lease: MemoryLease
  /** `content-length` of the response; 0: it has none. */
  readonly announcedBytes: number
  /** The body begins to stream. @param posted called when the last of it was passed on */
  readonly begin: (source: Source, posted: () => void) => Inflow
}

/**
 * A body that is passed on as it comes, unless it is small: one that has come as a whole by the turn of the event loop after its
 * head, or that is announced with no more than a part of a stream has, is kept until it can be given in one piece.
 */
export class StreamedBody implements BodyTarget {
  onRoom: (() => void) | undefined
  readonly #parts: StreamedBodyParts
  #kept: Uint8Array[] = []
  #keptBytes = 0
  #isInputOver = false
  #isOver = false
  #inflow: Inflow | undefined
  #done: ((body: Uint8Array) => void) | undefined

  constructor(parts: StreamedBodyParts) {
    this.#parts = parts
    const isSmall = parts.announcedBytes > 0 && parts.announcedBytes <= STREAM_PART_BYTES
    if (!isSmall) setImmediate(() => !this.#isInputOver && this.#stream())
  }

  get isStreamed(): boolean {
    return this.#inflow !== undefined
  }

  get isFull(): boolean {
    return this.#inflow?.isPaused === true
  }

  append(chunk: Uint8Array): void {
    if (this.#inflow !== undefined) return this.#inflow.push(chunk)
    if (!this.#parts.lease.grow(chunk.length)) throw failure('memory-full')
    this.#kept.push(chunk)
    this.#keptBytes += chunk.length
    if (this.#keptBytes > STREAM_PART_BYTES) this.#stream()
  }

  inputEnded(): void {
    this.#isInputOver = true
  }

  end(done: (body: Uint8Array) => void): void {
    this.#isOver = true
    if (this.#inflow === undefined) return done(joined(this.#kept, this.#keptBytes))
    this.#done = done
    this.#inflow.end()
  }

  /** It is not wanted any more. */
  drop(): void {
    this.#isOver = true
    this.#kept = []
  }

  #stream(): void {
    if (this.#isOver || this.#inflow !== undefined) return
    const { begin, lease } = this.#parts
    const source = { pause: () => {}, resume: () => this.onRoom?.() }
    this.#inflow = begin(source, () => this.#done?.(NO_BYTES))
    const kept = this.#kept
    this.#kept = []
    lease.shrink(this.#keptBytes)
    for (const chunk of kept) this.#inflow.push(chunk)
  }
}

const NO_BYTES = new Uint8Array(0)

/** In memory of its own. */
function joined(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  const whole = new Uint8Array(bytes)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}
