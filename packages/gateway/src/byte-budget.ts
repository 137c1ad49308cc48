import { SharedPool, type Holder } from '@carpool/core'

/** Closes the client for which bytes are held. */
type Cut = () => void

/**
 * Limits the bytes that clients make the server hold: bodies that arrive slowly, and answers that are read slowly. Above the
 * limit, those that have taken longest are cut off first: an honest client is done before an attacker, who wants to stay. Bodies
 * that have arrived whole are held until their calls end; they are not cut off, but shared out among owners and their functions.
 */
export class ByteBudget {
  readonly #limitBytes: number
  /** What waits for clients and holds something, the one that began to comes first. */
  readonly #slow = new Set<Reservation>()
  /** Of what does not wait for clients. */
  readonly shares: SharedPool
  #heldBytes = 0

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
    // They are held for as long as a call takes. An owner who is alone leaves a fifth, or another could be kept out for minutes.
    this.shares = new SharedPool(limitBytes, { alonePortion: 4 })
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** @param cut called if the client is to be cut off; the reservation was released before */
  open(cut: Cut): Reservation {
    return new Reservation(this, cut)
  }

  /** For reservations alone: it holds something from now on. */
  begin(reservation: Reservation): void {
    this.#slow.add(reservation)
  }

  /** For reservations alone. */
  changeBy(bytes: number): void {
    this.#heldBytes += bytes
    // A release while others are cut off makes room; it must not cut off more of them.
    if (bytes <= 0 || this.#heldBytes <= this.#limitBytes) return
    for (const reservation of this.#slow) {
      if (this.#heldBytes <= this.#limitBytes) return
      reservation.release()
      reservation.cut()
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
  /** For the budget alone. */
  readonly cut: Cut
  #heldBytes = 0
  #isOpen = true
  /** Whose share has `#sharedBytes` of it, once it is settled. */
  #holder: Holder | undefined
  #sharedBytes = 0

  constructor(budget: ByteBudget, cut: Cut) {
    this.#budget = budget
    this.cut = cut
  }

  /** Neither released nor cut off. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  add(bytes: number): void {
    if (!this.#isOpen || bytes === 0) return
    if (this.#heldBytes === 0) this.#budget.begin(this)
    this.#heldBytes += bytes
    this.#budget.changeBy(bytes)
  }

  /**
   * All bytes have arrived: they wait for a call of the function and not for the client any more, so to cut it off would gain
   * nothing.
   * @returns false if it was cut off, or if the function or its owner holds its share already: it is to be released
   */
  settle(holder: Holder): boolean {
    if (!this.#isOpen) return false
    if (this.#holder !== undefined) return true
    if (!this.#budget.shares.tryTake(holder, this.#heldBytes)) return false
    this.#holder = holder
    this.#sharedBytes = this.#heldBytes
    this.#budget.spare(this)
    return true
  }

  /** The bytes are not in memory any more. Harmless when repeated. */
  release(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    if (this.#holder !== undefined) this.#budget.shares.give(this.#holder, this.#sharedBytes)
    this.#budget.spare(this)
    this.#budget.changeBy(-this.#heldBytes)
  }
}
