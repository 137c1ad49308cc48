/** Closes the client for which bytes are held. */
type Cut = () => void

/**
 * Limits the bytes that clients make the server hold: bodies that arrive slowly, and answers that are read slowly. Above the
 * limit, those that have taken longest are cut off first: an honest client is done before an attacker, who wants to stay. Bodies
 * that have arrived whole are held until their calls end; they are not cut off, but shared out among functions.
 */
export class ByteBudget {
  readonly #limitBytes: number
  /** What waits for clients, the one that began first comes first. */
  readonly #slow = new Map<Reservation, Cut>()
  /** Of what does not wait for clients. */
  readonly shares: FunctionShares
  #heldBytes = 0

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
    this.shares = new FunctionShares(limitBytes)
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** @param cut called if the client is to be cut off; the reservation was released before */
  open(cut: Cut): Reservation {
    const reservation = new Reservation(this)
    this.#slow.set(reservation, cut)
    return reservation
  }

  /** For reservations alone. */
  changeBy(bytes: number): void {
    this.#heldBytes += bytes
    // A release while others are cut off makes room; it must not cut off more of them.
    if (bytes <= 0 || this.#heldBytes <= this.#limitBytes) return
    for (const [reservation, cut] of this.#slow) {
      if (this.#heldBytes <= this.#limitBytes) return
      reservation.release()
      cut()
    }
  }

  /** For reservations alone. */
  spare(reservation: Reservation): void {
    this.#slow.delete(reservation)
  }
}

/** Bytes in memory on behalf of one client. */
export class Reservation {
  readonly #budget: ByteBudget
  #heldBytes = 0
  #isOpen = true
  /** What it has of the share of a function, once it is settled. */
  #share: { readonly functionName: string; readonly bytes: number } | undefined

  constructor(budget: ByteBudget) {
    this.#budget = budget
  }

  /** Neither released nor cut off. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  add(bytes: number): void {
    if (!this.#isOpen) return
    this.#heldBytes += bytes
    this.#budget.changeBy(bytes)
  }

  /**
   * All bytes have arrived: they wait for a call of the function and not for the client any more, so to cut it off would gain
   * nothing.
   * @returns false if it was cut off, or if the function holds its share already: it is to be released
   */
  settle(functionName: string): boolean {
    if (!this.#isOpen) return false
    if (this.#share !== undefined) return true
    const bytes = this.#heldBytes
    if (!this.#budget.shares.tryTake(functionName, bytes)) return false
    this.#share = { functionName, bytes }
    this.#budget.spare(this)
    return true
  }

  /** The bytes are not in memory any more. Harmless when repeated. */
  release(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    if (this.#share !== undefined) this.#budget.shares.give(this.#share.functionName, this.#share.bytes)
    this.#budget.spare(this)
    this.#budget.changeBy(-this.#heldBytes)
  }
}

/** Of what is free, how much the calls of one function may hold at most. */
const PORTION = 1 / 2

/**
 * Shares out bytes among functions, so that a flood of one leaves room for the others: a function may hold at most half as much
 * as is free. Alone it gets a third; the more of them hold a lot, the less each may have, and one that holds nothing gets
 * something as long as it fits. These are the dynamic thresholds of Choudhury and Hahne, "Dynamic queue length thresholds for
 * shared-memory packet switches" (1998).
 */
export class FunctionShares {
  readonly #totalBytes: number
  readonly #held = new Map<string, number>()
  #usedBytes = 0

  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes
  }

  /** Takes `bytes` for a function, or nothing. */
  tryTake(functionName: string, bytes: number): boolean {
    const held = this.#held.get(functionName) ?? 0
    const freeBytes = this.#totalBytes - this.#usedBytes
    // Else the last of what is almost used up could be taken by nobody.
    const mayTake = held === 0 ? bytes <= freeBytes : held + bytes <= freeBytes * PORTION
    if (mayTake) this.#change(functionName, held + bytes, bytes)
    return mayTake
  }

  give(functionName: string, bytes: number): void {
    this.#change(functionName, (this.#held.get(functionName) ?? 0) - bytes, -bytes)
  }

  #change(functionName: string, held: number, by: number): void {
    this.#usedBytes += by
    if (held === 0) this.#held.delete(functionName)
    else this.#held.set(functionName, held)
  }
}
