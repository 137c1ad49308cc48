/** Sends what is said in one turn of the event loop in one message: a message costs more than what is in it. */
export class Outbox<Item> {
  readonly #post: (items: readonly Item[], transfers: readonly ArrayBuffer[]) => void
  readonly #soon: (flush: () => void) => void
  #items: Item[] = []
  #transfers: ArrayBuffer[] = []

  /**
   * @param post sends a message; the memory of `transfers` goes along
   * @param soon calls back when what belongs together has been said
   */
  constructor(post: (items: readonly Item[], transfers: readonly ArrayBuffer[]) => void, soon: (flush: () => void) => void) {
    this.#post = post
    this.#soon = soon
  }

  /** @param body bytes that are part of the item; their memory goes over to the receiver */
  put(item: Item, body?: Uint8Array): void {
    if (this.#items.length === 0) this.#soon(() => this.#flush())
    this.#items.push(item)
    if (body !== undefined && body.length > 0) this.#transfers.push(body.buffer as ArrayBuffer)
  }

  #flush(): void {
    const items = this.#items
    const transfers = this.#transfers
    this.#items = []
    this.#transfers = []
    this.#post(items, transfers)
  }
}
