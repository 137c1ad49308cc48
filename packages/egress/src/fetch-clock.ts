/**
 * Holds a fetch to its time. Up to the head of its response it has so much in all; once a body streams, each byte that moves
 * begins the time anew, and it stands still while the function takes nothing.
 */
export class FetchClock {
  readonly #timeoutMs: number
  readonly #isOver: (isStreaming: boolean) => void
  #timer: NodeJS.Timeout | undefined
  #isStreaming = false

  constructor(timeoutMs: number, isOver: (isStreaming: boolean) => void) {
    this.#timeoutMs = timeoutMs
    this.#isOver = isOver
    this.#start()
  }

  /** The response streams from now on. */
  streams(): void {
    this.#isStreaming = true
    this.moved()
  }

  /** Some of a body that streams has moved. */
  moved(): void {
    if (this.#timer === undefined) this.#start()
    else this.#timer.refresh()
  }

  /** Something of the response's body has come, or is not waited for. Until it streams, that changes nothing. */
  tell(state: 'moved' | 'held'): void {
    if (!this.#isStreaming) return
    if (state === 'moved') this.moved()
    else this.stop()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #start(): void {
    this.#timer = setTimeout(() => this.#isOver(this.#isStreaming), this.#timeoutMs)
  }
}
