/** What a heap holds: it knows its place there. */
export interface Placed {
  /** For the heap alone. */
  place: number
}

/** A binary heap whose members are moved and taken out in O(log n). A member is in one heap at a time. */
export class Heap<T extends Placed> {
  readonly #members: T[] = []
  readonly #isBefore: (one: T, other: T) => boolean

  /** @param isBefore a strict order of members that are in the heap; whoever changes it calls {@link moved} at once */
  constructor(isBefore: (one: T, other: T) => boolean) {
    this.#isBefore = isBefore
  }

  get size(): number {
    return this.#members.length
  }

  get first(): T | undefined {
    return this.#members[0]
  }

  /** In no order. */
  get members(): readonly T[] {
    return this.#members
  }

  add(member: T): void {
    member.place = this.#members.push(member) - 1
    this.#rise(member)
  }

  remove(member: T): void {
    const last = this.#members.pop()!
    if (last === member) return
    this.#put(last, member.place)
    this.moved(last)
  }

  /** Its place in the order may have changed. */
  moved(member: T): void {
    this.#rise(member)
    this.#sink(member)
  }

  /**
   * The first in the order that is accepted. Asked are those before it and itself, in the order.
   * @param accepts must not change the heap
   */
  find(accepts: (member: T) => boolean): T | undefined {
    const { first } = this
    if (first === undefined || accepts(first)) return first
    // Every other member comes behind its parent, so the next is always one of these: the first of them is at the end.
    const open: T[] = []
    let asked: T | undefined = first
    while (asked !== undefined) {
      const left: number = 2 * asked.place + 1
      for (let child = left; child <= left + 1 && child < this.#members.length; child++) {
        const member = this.#members[child]!
        open.splice(this.#positionIn(open, member), 0, member)
      }
      asked = open.pop()
      if (asked !== undefined && accepts(asked)) return asked
    }
    return undefined
  }

  #positionIn(descending: readonly T[], member: T): number {
    let low = 0
    let high = descending.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#isBefore(member, descending[middle]!)) low = middle + 1
      else high = middle
    }
    return low
  }

  #put(member: T, place: number): void {
    this.#members[place] = member
    member.place = place
  }

  #rise(member: T): void {
    let { place } = member
    while (place > 0) {
      const parent = (place - 1) >>> 1
      const above = this.#members[parent]!
      if (!this.#isBefore(member, above)) break
      this.#put(above, place)
      place = parent
    }
    this.#put(member, place)
  }

  #sink(member: T): void {
    let { place } = member
    for (;;) {
      let child = 2 * place + 1
      if (child >= this.#members.length) break
      const [left, right] = [this.#members[child]!, this.#members[child + 1]]
      const below = right !== undefined && this.#isBefore(right, left) ? right : left
      if (below === right) child++
      if (!this.#isBefore(below, member)) break
      this.#put(below, place)
      place = child
    }
    this.#put(member, place)
  }
}
