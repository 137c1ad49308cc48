import { bytesPart, bytesSet, type List, max, min, SafeList, SafeUint8Array, typedArrayLength } from '../language/primordials.ts'

/** Room that is taken ahead at most, in bytes. */
const AHEAD_MAX = 1024 * 1024

/** Bytes that come bit by bit, copied: their buffers may change, be detached, or be much larger than the part that counts. */
export class ByteList {
  /** All are full, but the last may have room. */
  readonly #segments: List<Uint8Array<ArrayBuffer>> = new SafeList()
  #room = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  append(chunk: Uint8Array): void {
    const length = typedArrayLength(chunk)
    // Nothing can be copied from a buffer that was detached.
    if (length === 0) return
    const fits = min(this.#room, length)
    if (fits > 0) this.#fill(bytesPart(chunk, 0, fits))
    if (fits === length) return
    const left = length - fits
    // The first chunk is often the only one.
    this.#room = max(left, min(this.#length, AHEAD_MAX))
    this.#segments[this.#segments.length] = new SafeUint8Array(this.#room)
    this.#fill(bytesPart(chunk, fits, length))
  }

  /** Calls back with the bytes, part by part. */
  each(take: (part: Uint8Array<ArrayBuffer>) => void): void {
    const last = this.#segments.length - 1
    for (let index = 0; index <= last; index++) {
      const segment = this.#segments[index]!
      const room = index === last ? this.#room : 0
      take(room === 0 ? segment : (bytesPart(segment, 0, typedArrayLength(segment) - room) as Uint8Array<ArrayBuffer>))
    }
  }

  /** All of them, in a buffer of their own. */
  bytes(): Uint8Array<ArrayBuffer> {
    if (this.#segments.length === 1 && this.#room === 0) return this.#segments[0]!
    const bytes = new SafeUint8Array(this.#length)
    let offset = 0
    this.each((part) => {
      bytesSet(bytes, part, offset)
      offset += typedArrayLength(part)
    })
    return bytes
  }

  #fill(part: Uint8Array): void {
    const segment = this.#segments[this.#segments.length - 1]!
    bytesSet(segment, part, typedArrayLength(segment) - this.#room)
    this.#room -= typedArrayLength(part)
    this.#length += typedArrayLength(part)
  }
}
