import { FairOrder, Flow, type Holder } from '@carpool/core'

/** What may come from peers in one turn of the event loop before those that have read wait for the next turns. */
const TURN_BYTES = 2 * 1024 * 1024
/** Of those that wait, how many read in one turn. */
const READERS_PER_TURN = 32
/** What a read takes at most. Whoever can stop within a read does so when it has cost more. */
export const READ_BYTES = 64 * 1024
/** What the smallest piece counts: the work goes by pieces if a peer makes them small. */
const PIECE_BYTES = 512

/** What a piece counts that has come by itself: a read, a chunk, a frame. */
export function readCost(bytes: number): number {
  return Math.max(bytes, PIECE_BYTES)
}

/** Takes bytes from a peer. */
export interface Reader {
  /** Its turn to read again has come. */
  readAgain(): void
}

class WaitingReaders extends Flow {
  readonly readers = new Set<Reader>()
}

/**
 * Bounds how much comes from peers in each turn of the event loop, by turns between owners and then between their functions: what
 * a thousand connections of one function bring would hold up everybody else's.
 */
export class ReadTurns {
  readonly #nextTurn: (callback: () => void) => void
  readonly #order = new FairOrder((holder) => new WaitingReaders(holder))
  #bytes = 0
  #isScheduled = false

  /** @param nextTurn calls back in the next turn of the event loop */
  constructor(nextTurn: (callback: () => void) => void = setImmediate) {
    this.#nextTurn = nextTurn
  }

  /** Something has come. @param bytes see {@link readCost} @returns whether the reader may go on; if not, it is told when */
  took(holder: Holder, bytes: number, reader: Reader): boolean {
    this.#bytes += bytes
    this.#schedule()
    if (this.#order.waiting === 0 && this.#bytes < TURN_BYTES) return true
    this.#order.wait(holder).readers.add(reader)
    return false
  }

  /** Harmless if it does not wait. */
  leave(holder: Holder, reader: Reader): void {
    const flow = this.#order.find(holder)
    if (flow?.readers.delete(reader) === true && flow.readers.size === 0) this.#order.rest(flow)
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#nextTurn(() => this.#turn())
  }

  #turn(): void {
    this.#isScheduled = false
    this.#bytes = 0
    for (let readers = 0; readers < READERS_PER_TURN; readers++) {
      const flow = this.#order.first()
      if (flow === undefined) return this.#order.reset()
      const [reader] = flow.readers
      this.#order.charge(flow, 1)
      this.leave(flow, reader!)
      reader!.readAgain()
    }
    if (this.#order.waiting > 0) this.#schedule()
  }
}
