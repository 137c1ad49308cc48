import type { Holder } from './fair-order.ts'

/** Of what is free, how much a function may hold at most, and an owner beside other owners. */
const PORTION = 1 / 2

export interface SharedPoolOptions {
  /** Of what is free, how much an owner may hold while no other holds anything. Default: all of it, which is half of the pool. */
  readonly alonePortion?: number
}

/** What the functions of one owner hold. */
class OwnerHoldings {
  held = 0
  /** Functions that hold something. */
  holding = 0
  /** By function. What is 0 stays for a while: a Map whose keys come and go costs more than the few that it has. */
  readonly ofFunction = new Map<string, number>()
}

/** Those who hold nothing are forgotten when there are so many more of them than of those who do: anybody can make up names. */
const MAX_IDLE = 64

/**
 * Shares out a resource so that a flood of one holder leaves room for others, first between owners and then between the functions
 * of each. A function may hold at most half as much as is free; alone it gets a third. An owner may hold no more than that either
 * as soon as another owner holds something, however many functions it has; but each of them may come to its equal part of it,
 * even if the others hold more than theirs. Who holds nothing gets something as long as there is anything. These are the dynamic
 * thresholds of Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches" (1998).
 */
export class SharedPool {
  readonly total: number
  readonly #alonePortion: number
  readonly #owners = new Map<string, OwnerHoldings>()
  /** Owners who hold something. */
  #holding = 0
  #used = 0

  constructor(total: number, { alonePortion = 1 }: SharedPoolOptions = {}) {
    this.total = total
    this.#alonePortion = alonePortion
  }

  get used(): number {
    return this.#used
  }

  /** Owners, and functions of all of them, that are remembered, whether they hold something or not. */
  get remembered(): number {
    let count = this.#owners.size
    for (const { ofFunction } of this.#owners.values()) count += ofFunction.size
    return count
  }

  /** Whether a holder may have so much more. */
  permits({ owner, functionName }: Holder, amount: number): boolean {
    const holdings = this.#owners.get(owner)
    return this.#permits(holdings, holdings?.ofFunction.get(functionName) ?? 0, amount)
  }

  /** Takes `amount` for a holder, or nothing. */
  tryTake({ owner, functionName }: Holder, amount: number): boolean {
    const holdings = this.#holdingsOf(owner)
    const held = holdings.ofFunction.get(functionName) ?? 0
    if (!this.#permits(holdings, held, amount)) return false
    this.#change(holdings, functionName, held, amount)
    return true
  }

  give({ owner, functionName }: Holder, amount: number): void {
    const holdings = this.#holdingsOf(owner)
    this.#change(holdings, functionName, holdings.ofFunction.get(functionName) ?? 0, -amount)
  }

  /** @param held what the function holds */
  #permits(owner: OwnerHoldings | undefined, held: number, amount: number): boolean {
    const free = this.total - this.#used
    if (amount > free) return false
    // Else nothing could take the last of an almost empty pool.
    if (owner === undefined || owner.held === 0) return true
    if (held > 0 && held + amount > free * PORTION) return false
    const isAlone = this.#holding === 1
    const ofOwner = free * (isAlone ? this.#alonePortion : PORTION)
    if (owner.held + amount <= ofOwner) return true
    if (isAlone || owner.held + amount > free) return false
    return held + amount <= ofOwner / (owner.holding + (held === 0 ? 1 : 0))
  }

  #holdingsOf(owner: string): OwnerHoldings {
    let holdings = this.#owners.get(owner)
    if (holdings !== undefined) return holdings
    if (this.#owners.size > 2 * this.#holding + MAX_IDLE) {
      for (const [name, { held }] of this.#owners) if (held === 0) this.#owners.delete(name)
    }
    this.#owners.set(owner, (holdings = new OwnerHoldings()))
    return holdings
  }

  #change(owner: OwnerHoldings, functionName: string, held: number, by: number): void {
    this.#used += by
    this.#holding += holdersAdded(owner.held, by)
    owner.held += by
    owner.holding += holdersAdded(held, by)
    const { ofFunction } = owner
    ofFunction.set(functionName, held + by)
    if (ofFunction.size <= 2 * owner.holding + MAX_IDLE) return
    for (const [name, amount] of ofFunction) if (amount === 0) ofFunction.delete(name)
  }
}

/** How many more hold something once a holder's `held` has changed: 1 if it held nothing before, -1 if it does not any more. */
function holdersAdded(held: number, by: number): number {
  return Number(held + by > 0) - Number(held > 0)
}
