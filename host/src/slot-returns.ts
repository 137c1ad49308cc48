import type { Send } from './send.ts'

/** Tells the server of invocations that wait from now on: those of one turn in one message. */
export class SlotReturns {
  readonly #send: Send
  #invocations: number[] = []

  constructor(send: Send) {
    this.#send = send
  }

  add(invocation: number): void {
    this.#invocations.push(invocation)
    if (this.#invocations.length === 1) queueMicrotask(() => this.#tell())
  }

  #tell(): void {
    this.#send({ type: 'waiting', invocations: this.#invocations })
    this.#invocations = []
  }
}
