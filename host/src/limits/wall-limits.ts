import { monotonicClock, type Clock } from '@carpool/core'

/** What has a wall limit; it is in a list of its like. */
export class Limited {
  /** When its time is up, on the monotonic clock, in ms. */
  endsAtMs = 0
  before: Limited | undefined = undefined
  after: Limited | undefined = undefined
  list: LimitList | undefined = undefined
}

/** Those of one limit, in the order in which their time is up: that in which they came. */
interface LimitList {
  first: Limited | undefined
  last: Limited | undefined
  isTimed: boolean
}

/** Calls back after so many ms. It does not keep the process alive. */
type Later = (callback: () => void, inMs: number) => void

/**
 * Calls back when something has taken as long as it may. Nearly everything ends long before, and a timer for each costs more than
 * the rest of its bookkeeping. So there is one timer for each limit in use. It is set for the first in the list; when it fires
 * and that one has ended, it is set for the next.
 */
export class WallLimits<T extends Limited> {
  readonly #onOver: (limited: T) => void
  readonly #clock: Clock
  readonly #later: Later
  readonly #lists = new Map<number, LimitList>()

  constructor(onOver: (limited: T) => void, clock = monotonicClock, later: Later = setTimer) {
    this.#onOver = onOver
    this.#clock = clock
    this.#later = later
  }

  add(limited: T, wallMs: number): void {
    let list = this.#lists.get(wallMs)
    if (list === undefined) this.#lists.set(wallMs, (list = { first: undefined, last: undefined, isTimed: false }))
    limited.endsAtMs = this.#clock() + wallMs
    limited.list = list
    limited.before = list.last
    if (list.last === undefined) list.first = limited
    else list.last.after = limited
    list.last = limited
    if (!list.isTimed) this.#set(list, wallMs, wallMs)
  }

  /** Its time begins anew, if it is limited. */
  restart(limited: T, wallMs: number): void {
    if (limited.list === undefined) return
    this.remove(limited)
    this.add(limited, wallMs)
  }

  /** It has ended. Harmless if it had. */
  remove(limited: T): void {
    const { list, before, after } = limited
    if (list === undefined) return
    if (before === undefined) list.first = after
    else before.after = after
    if (after === undefined) list.last = before
    else after.before = before
    limited.list = limited.before = limited.after = undefined
  }

  #set(list: LimitList, wallMs: number, inMs: number): void {
    list.isTimed = true
    this.#later(() => this.#check(list, wallMs), Math.ceil(inMs))
  }

  #check(list: LimitList, wallMs: number): void {
    list.isTimed = false
    for (;;) {
      const { first } = list
      if (first === undefined) return void this.#lists.delete(wallMs)
      const leftMs = first.endsAtMs - this.#clock()
      if (leftMs > 0) return this.#set(list, wallMs, leftMs)
      this.remove(first as T)
      this.#onOver(first as T)
    }
  }
}

function setTimer(callback: () => void, inMs: number): void {
  setTimeout(callback, inMs).unref()
}
