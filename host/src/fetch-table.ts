import type { Guest } from './guest.ts'

interface OpenFetch {
  readonly guest: Guest
  /** The guest's own number for it. */
  readonly guestFetch: number
}

/** The fetches that guests wait for, numbered for the connection. */
export class FetchTable {
  readonly #open = new Map<number, OpenFetch>()
  readonly #numbers = new WeakMap<Guest, Map<number, number>>()
  #last = 0

  add(guest: Guest, guestFetch: number): number {
    const number = ++this.#last
    this.#open.set(number, { guest, guestFetch })
    const numbers = this.#numbers.get(guest) ?? new Map<number, number>()
    this.#numbers.set(guest, numbers.set(guestFetch, number))
    guest.openFetches++
    return number
  }

  /** Takes a fetch out by its number on the connection. */
  take(number: number): OpenFetch | undefined {
    const fetch = this.#open.get(number)
    if (fetch === undefined) return undefined
    this.#open.delete(number)
    this.#numbers.get(fetch.guest)?.delete(fetch.guestFetch)
    fetch.guest.openFetches--
    return fetch
  }

  /** Takes a fetch out by its guest's number; returns its number on the connection. */
  stop(guest: Guest, guestFetch: number): number | undefined {
    const number = this.#numbers.get(guest)?.get(guestFetch)
    if (number !== undefined) this.take(number)
    return number
  }
}
