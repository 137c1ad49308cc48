/** The end of a piece, and how many frames begin in it. */
export interface Cut {
  readonly end: number
  readonly frames: number
}

/** Cuts what a WebSocket server sends into pieces of so many frames. It only knows where frames begin; see RFC 6455, 5.2. */
export class FrameCutter {
  readonly #maxFrames: number
  /** Bytes of the payload that have not come. */
  #payload = 0
  /** The first byte of a frame has come. */
  #isInHead = false
  /** Bytes of a length of 16 or 64 bits that have not come. */
  #lengthBytes = 0

  constructor(maxFrames: number) {
    this.#maxFrames = maxFrames
  }

  /** @param start where the piece begins: behind the one before */
  cut(bytes: Uint8Array, start: number): Cut {
    let frames = 0
    let at = start
    while (at < bytes.length) {
      if (this.#lengthBytes === 0 && this.#payload > 0) {
        const come = Math.min(this.#payload, bytes.length - at)
        this.#payload -= come
        at += come
      } else {
        const isNext = !this.#isInHead && this.#lengthBytes === 0
        if (isNext && frames === this.#maxFrames) break
        if (isNext) frames += 1
        this.#readHead(bytes[at]!)
        at += 1
      }
    }
    return { end: at, frames }
  }

  #readHead(byte: number): void {
    if (this.#lengthBytes > 0) {
      this.#payload = this.#payload * 256 + byte
      this.#lengthBytes -= 1
      return
    }
    this.#isInHead = !this.#isInHead
    if (this.#isInHead) return
    // The other bit would say that it is masked, which a server must not do: the library ends the connection.
    const length = byte & 0x7f
    if (length === 126) this.#lengthBytes = 2
    else if (length === 127) this.#lengthBytes = 8
    else this.#payload = length
  }
}
