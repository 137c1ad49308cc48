/**
 * Lets the caller of an invocation give up on it. An AbortController would do the same, but making one and listening to it takes longer
 * than any other step of an invocation in the server.
 */
export class Cancellation {
  #listener: (() => void) | undefined
  #canceled = false

  get canceled(): boolean {
    return this.#canceled
  }

  /** Has one listener called when the caller gives up; at once if it has. A later listener takes the place of an earlier one. */
  onCancel(listener: (() => void) | undefined): void {
    this.#listener = listener
    if (this.#canceled) listener?.()
  }

  /** Gives up. Harmless when repeated. */
  cancel(): void {
    if (this.#canceled) return
    this.#canceled = true
    this.#listener?.()
  }
}
