/** A smaller body leaves with its message: it holds up the next message no longer than other messages do. */
export const LARGE_BYTES = 64 * 1024

/** Where bodies come together again whose parts come in other frames than the messages that they belong to. */
export class BodyParts {
  readonly #maxBytes: number
  readonly #open = new Map<number, { readonly bytes: Buffer; length: number }>()
  #openBytes = 0

  /** @param maxBytes of all bodies that are open, together */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bodies that have begun and were not taken. */
  get open(): number {
    return this.#open.size
  }

  /**
   * @param number of the body, on this connection
   * @param totalBytes that it has when it is whole; 0 if its message never comes
   * @throws Error if that fits no body
   */
  add(number: number, totalBytes: number, part: Uint8Array): void {
    let body = this.#open.get(number)
    if (totalBytes === 0) {
      this.#open.delete(number)
      this.#openBytes -= body?.bytes.length ?? 0
      return
    }
    if (body === undefined) {
      if (totalBytes < LARGE_BYTES) throw new Error('A body in parts is too small to be one.')
      if (this.#openBytes + totalBytes > this.#maxBytes) throw new Error('A body in parts is too large to be one.')
      this.#openBytes += totalBytes
      this.#open.set(number, (body = { bytes: Buffer.allocUnsafeSlow(totalBytes), length: 0 }))
    }
    if (totalBytes !== body.bytes.length || body.length + part.length > totalBytes)
      throw new Error('A part is longer than its body.')
    body.bytes.set(part, body.length)
    body.length += part.length
  }

  /** @throws Error if the body is not whole */
  take(number: number): Buffer {
    const body = this.#open.get(number)
    if (body === undefined || body.length < body.bytes.length) throw new Error('A message came before its body.')
    this.#open.delete(number)
    this.#openBytes -= body.bytes.length
    return body.bytes
  }
}
