const SMALL_BYTES = 4096
const BLOCK_BYTES = 16 * 1024

/**
 * Bytes that wait, in the order in which they came. Small chunks are copied together: kept as they are, a thousand of them
 * would each take a hundred times their size.
 */
export class ByteQueue {
  readonly #pieces: Uint8Array[] = []
  /** Room behind the last piece, if that is a block of ours. */
  #block: Buffer | undefined
  #blockBytes = 0
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  push(chunk: Uint8Array): void {
    this.#bytes += chunk.length
    const isAlone = this.#pieces.length === 0 && this.#block === undefined
    if (isAlone || chunk.length >= SMALL_BYTES) {
      this.#closeBlock()
      this.#pieces.push(chunk)
      return
    }
    if (this.#block !== undefined && this.#blockBytes + chunk.length > BLOCK_BYTES) this.#closeBlock()
    this.#block ??= Buffer.allocUnsafeSlow(BLOCK_BYTES)
    this.#block.set(chunk, this.#blockBytes)
    this.#blockBytes += chunk.length
  }

  /** The next bytes, at most so many; undefined if there are none. */
  take(mostBytes: number): Uint8Array | undefined {
    if (this.#pieces.length === 0) this.#closeBlock()
    const first = this.#pieces[0]
    if (first === undefined) return undefined
    const taken = first.length <= mostBytes ? first : first.subarray(0, mostBytes)
    if (taken === first) this.#pieces.shift()
    else this.#pieces[0] = first.subarray(mostBytes)
    this.#bytes -= taken.length
    return taken
  }

  clear(): void {
    this.#pieces.length = 0
    this.#block = undefined
    this.#blockBytes = this.#bytes = 0
  }

  #closeBlock(): void {
    if (this.#block !== undefined) this.#pieces.push(this.#block.subarray(0, this.#blockBytes))
    this.#block = undefined
    this.#blockBytes = 0
  }
}
