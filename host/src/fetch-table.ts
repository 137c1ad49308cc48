import type { Account } from '@carpool/metering'
import type { Guest } from './guest.ts'

/** What the table needs of a guest. */
export type FetchingGuest = Pick<Guest, 'disposed' | 'openFetches'>

export interface OpenFetch<G extends FetchingGuest = Guest> {
  /** Its number on the connection. */
  readonly number: number
  readonly guest: G
  /** The guest's own number for it. */
  readonly guestFetch: number
  /** On whose behalf the guest says that it fetches. */
  readonly invocation: number
  /** Whose it is. */
  readonly account: Account
}

/** The open fetches of one guest. */
interface GuestFetches<G extends FetchingGuest> {
  readonly byGuestFetch: Map<number, OpenFetch<G>>
  readonly byInvocation: Map<number, Set<OpenFetch<G>>>
}

/** The fetches that guests wait for, numbered for the connection. */
export class FetchTable<G extends FetchingGuest = Guest> {
  readonly #open = new Map<number, OpenFetch<G>>()
  readonly #byGuest = new Map<G, GuestFetches<G>>()
  #last = 0

  get size(): number {
    return this.#open.size
  }

  add(guest: G, guestFetch: number, invocation: number, account: Account): number {
    const fetch = { number: ++this.#last, guest, guestFetch, invocation, account }
    this.#open.set(fetch.number, fetch)
    let fetches = this.#byGuest.get(guest)
    if (fetches === undefined) this.#byGuest.set(guest, (fetches = { byGuestFetch: new Map(), byInvocation: new Map() }))
    fetches.byGuestFetch.set(guestFetch, fetch)
    const others = fetches.byInvocation.get(invocation)
    if (others === undefined) fetches.byInvocation.set(invocation, new Set([fetch]))
    else others.add(fetch)
    guest.openFetches++
    return fetch.number
  }

  /** Takes a fetch out by its number on the connection. */
  take(number: number): OpenFetch<G> | undefined {
    const fetch = this.#open.get(number)
    if (fetch !== undefined) this.#remove(fetch)
    return fetch
  }

  /** Takes a fetch out by its guest's number; returns its number on the connection. */
  stop(guest: G, guestFetch: number): number | undefined {
    const fetch = this.#byGuest.get(guest)?.byGuestFetch.get(guestFetch)
    if (fetch !== undefined) this.#remove(fetch)
    return fetch?.number
  }

  /** Takes out what an invocation of a guest waits for. */
  takeOf(guest: G, invocation: number): OpenFetch<G>[] {
    const fetches = [...(this.#byGuest.get(guest)?.byInvocation.get(invocation) ?? [])]
    for (const fetch of fetches) this.#remove(fetch)
    return fetches
  }

  /** Takes out what guests wait for that are gone, whether we or V8 disposed them. */
  takeOrphans(): OpenFetch<G>[] {
    const orphans = [...this.#byGuest].flatMap(([guest, { byGuestFetch }]) => (guest.disposed ? [...byGuestFetch.values()] : []))
    for (const fetch of orphans) this.#remove(fetch)
    return orphans
  }

  #remove(fetch: OpenFetch<G>): void {
    const { number, guest, guestFetch, invocation } = fetch
    this.#open.delete(number)
    guest.openFetches--
    const fetches = this.#byGuest.get(guest)
    if (fetches === undefined) return
    fetches.byGuestFetch.delete(guestFetch)
    if (fetches.byGuestFetch.size === 0) return void this.#byGuest.delete(guest)
    const others = fetches.byInvocation.get(invocation)
    others?.delete(fetch)
    if (others?.size === 0) fetches.byInvocation.delete(invocation)
  }
}
