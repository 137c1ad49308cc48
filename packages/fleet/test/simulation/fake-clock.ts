interface Event {
  readonly atMs: number
  readonly turn: number
  readonly happen: () => void
}

/** Time that passes only from event to event; events of one time happen in the order in which they were planned. */
export class FakeClock {
  readonly #heap: Event[] = []
  #turn = 0
  nowMs = 0

  after(delayMs: number, happen: () => void): void {
    const event = { atMs: this.nowMs + delayMs, turn: this.#turn++, happen }
    let child = this.#heap.push(event) - 1
    while (child > 0) {
      const parent = (child - 1) >> 1
      if (!isBefore(event, this.#heap[parent]!)) break
      this.#heap[child] = this.#heap[parent]!
      child = parent
    }
    this.#heap[child] = event
  }

  every(periodMs: number, happen: () => void): void {
    this.after(periodMs, () => {
      happen()
      this.every(periodMs, happen)
    })
  }

  runUntil(untilMs: number): void {
    const { stackTraceLimit } = Error
    // Each call that is refused makes an error, and how it came about takes longer to note down than all the rest.
    Error.stackTraceLimit = 1
    try {
      while (this.#heap.length > 0 && this.#heap[0]!.atMs <= untilMs) {
        const event = this.#takeFirst()
        this.nowMs = event.atMs
        event.happen()
      }
    } finally {
      Error.stackTraceLimit = stackTraceLimit
    }
    this.nowMs = untilMs
  }

  #takeFirst(): Event {
    const first = this.#heap[0]!
    const last = this.#heap.pop()!
    if (this.#heap.length === 0) return first
    let parent = 0
    for (;;) {
      let child = 2 * parent + 1
      if (child >= this.#heap.length) break
      if (child + 1 < this.#heap.length && isBefore(this.#heap[child + 1]!, this.#heap[child]!)) child++
      if (!isBefore(this.#heap[child]!, last)) break
      this.#heap[parent] = this.#heap[child]!
      parent = child
    }
    this.#heap[parent] = last
    return first
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.turn < b.turn)
}
