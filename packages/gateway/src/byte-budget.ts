import { FunctionShares } from './function-shares.ts'

/** Ends what bytes are held for. */
type Cut = () => void

/**
 * Limits the bytes that clients make the server hold: bodies that come slowly, and answers that are taken slowly. When there are more, those
 * who have taken longest are cut off first: an honest client is done before an attacker, who wants to stay. Bodies that have come whole are held
 * until their calls end, and nobody is cut off for them: they are shared out among functions.
 */
export class ByteBudget {
  readonly #limitBytes: number
  /** How to cut off the clients that are waited for, the one that began first comes first. */
  readonly #slow = new Map<Holding, Cut>()
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

  /** @param cut called if the client is to be cut off; what is held counts as released before */
  open(cut: Cut): Holding {
    const holding = new Holding(this)
    this.#slow.set(holding, cut)
    return holding
  }

  /** For holdings alone. */
  changeBy(bytes: number): void {
    this.#heldBytes += bytes
    // What is released while others are cut makes room; it cuts nobody out of turn.
    if (bytes <= 0 || this.#heldBytes <= this.#limitBytes) return
    for (const [holding, cut] of this.#slow) {
      if (this.#heldBytes <= this.#limitBytes) return
      holding.release()
      cut()
    }
  }

  /** For holdings alone. */
  spare(holding: Holding): void {
    this.#slow.delete(holding)
  }
}

/** Bytes in memory on behalf of one client. */
export class Holding {
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
   * All has come: they wait for a call of the function and not for the client any more, so nothing is won by cutting it off.
   * @returns false if it was cut off, or if the function holds its share already: they are to be released
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

  /** They are not in memory any more. Harmless when repeated. */
  release(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    if (this.#share !== undefined) this.#budget.shares.give(this.#share.functionName, this.#share.bytes)
    this.#budget.spare(this)
    this.#budget.changeBy(-this.#heldBytes)
  }
}
