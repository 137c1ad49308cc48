import { bytesPart, bytesSet, type List, max, min, SafeList, SafeUint8Array, typedArrayLength } from './language/primordials.ts'

/** Longest segment, and the room that is taken ahead at most, in bytes. */
const SEGMENT_MAX = 64 * 1024

/**
 * Bytes that come bit by bit and are taken from the front. They are copied: the buffer of a chunk may change, be detached, or
 * be much larger than the part that counts; and many small chunks would take many times their size.
 */
export class ByteQueue {
  #segments: List<Uint8Array<ArrayBuffer>> = new SafeList()
  #first = 0
  /** Of the first segment, what was taken. */
  #offset = 0
  /** Of the last one, what is free. */
  #room = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  append(chunk: Uint8Array): void {
    const length = typedArrayLength(chunk)
    let done = 0
    while (done < length) {
      if (this.#room === 0) this.#grow(length - done)
      const segment = this.#segments[this.#segments.length - 1]!
      const part = min(this.#room, length - done)
      bytesSet(segment, bytesPart(chunk, done, done + part), typedArrayLength(segment) - this.#room)
      this.#room -= part
      done += part
    }
    this.#length += length
  }

  /** The next bytes, so many at most and fewer if they are not in one piece; undefined if there are none. */
  takeNext(most: number): Uint8Array | undefined {
    if (this.#length === 0 || most <= 0) return undefined
    const isLast = this.#first === this.#segments.length - 1
    const segment = this.#segments[this.#first]!
    const filled = typedArrayLength(segment) - (isLast ? this.#room : 0)
    const end = min(filled, this.#offset + most)
    const taken = bytesPart(segment, this.#offset, end)
    this.#length -= end - this.#offset
    this.#offset = end
    if (this.#length === 0) this.empty()
    else if (end === filled) this.#leaveFirst()
    return taken
  }

  /** The next bytes in one piece, so many at most; undefined if there are none. */
  takeTogether(most: number): Uint8Array | undefined {
    const first = this.takeNext(most)
    if (first === undefined || this.#length === 0 || typedArrayLength(first) === most) return first
    const bytes = new SafeUint8Array(min(most, typedArrayLength(first) + this.#length))
    let offset = 0
    for (let part: Uint8Array | undefined = first; part !== undefined; part = this.takeNext(most - offset)) {
      bytesSet(bytes, part, offset)
      offset += typedArrayLength(part)
    }
    return bytes
  }

  /** All of them, in a buffer of their own. */
  takeAll(): Uint8Array<ArrayBuffer> {
    const only = this.#segments[this.#first]
    if (only !== undefined && this.#offset === 0 && this.#length === typedArrayLength(only)) {
      this.empty()
      return only
    }
    const bytes = new SafeUint8Array(this.#length)
    let offset = 0
    for (let part = this.takeNext(SEGMENT_MAX); part !== undefined; part = this.takeNext(SEGMENT_MAX)) {
      bytesSet(bytes, part, offset)
      offset += typedArrayLength(part)
    }
    return bytes
  }

  empty(): void {
    this.#segments = new SafeList()
    this.#first = this.#offset = this.#room = this.#length = 0
  }

  /** The first chunk is often the only one. */
  #grow(needed: number): void {
    this.#room = min(SEGMENT_MAX, max(needed, this.#length))
    this.#segments[this.#segments.length] = new SafeUint8Array(this.#room)
  }

  /** Those that were left go once they are as many as the others, so that each is moved once at most. */
  #leaveFirst(): void {
    this.#segments[this.#first] = NONE
    this.#first++
    this.#offset = 0
    if (this.#first * 2 < this.#segments.length) return
    const left: List<Uint8Array<ArrayBuffer>> = new SafeList()
    for (let index = this.#first; index < this.#segments.length; index++) left[left.length] = this.#segments[index]!
    this.#segments = left
    this.#first = 0
  }
}

const NONE = new SafeUint8Array(0)
