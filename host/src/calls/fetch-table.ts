import type { Account } from '../accounting/account.ts'
import type { Guest } from '../isolates/guest.ts'

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
  /** When it began, on the monotonic clock, in ms. */
  readonly beganAtMs: number
  /** Size of its body. */
  readonly bytes: number
}

/** The open fetches of one guest. */
interface GuestFetches<G extends FetchingGuest> {
  bytes: number
  readonly byGuestFetch: Map<number, OpenFetch<G>>
  readonly byInvocation: Map<number, Set<OpenFetch<G>>>
}

/** The fetches that guests wait for, numbered for the connection. */
export class FetchTable<G extends FetchingGuest = Guest> {
  readonly #open = new Map<number, OpenFetch<G>>()
  readonly #byGuest = new Map<G, GuestFetches<G>>()
  /** Bodies of all that are open. */
  bytes = 0
  #last = 0

  get size(): number {
    return this.#open.size
  }

  /** Bodies that a guest has sent by fetches that are open, in bytes. */
  bytesOf(guest: G): number {
    return this.#byGuest.get(guest)?.bytes ?? 0
  }

  /** @returns its number on the connection */
  add(given: Omit<OpenFetch<G>, 'number'>): number {
    const fetch = { ...given, number: ++this.#last }
    const { guest, guestFetch, invocation } = fetch
    this.bytes += fetch.bytes
    this.#open.set(fetch.number, fetch)
    let fetches = this.#byGuest.get(guest)
    if (fetches === undefined)
      this.#byGuest.set(guest, (fetches = { bytes: 0, byGuestFetch: new Map(), byInvocation: new Map() }))
    fetches.bytes += fetch.bytes
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

  /** Takes out what passes the test. */
  takeIf(test: (fetch: OpenFetch<G>) => boolean): OpenFetch<G>[] {
    const found = [...this.#open.values()].filter(test)
    for (const fetch of found) this.#remove(fetch)
    return found
  }

  #remove(fetch: OpenFetch<G>): void {
    const { number, guest, guestFetch, invocation } = fetch
    this.#open.delete(number)
    guest.openFetches--
    this.bytes -= fetch.bytes
    const fetches = this.#byGuest.get(guest)
    if (fetches === undefined) return
    fetches.bytes -= fetch.bytes
    fetches.byGuestFetch.delete(guestFetch)
    if (fetches.byGuestFetch.size === 0) return void this.#byGuest.delete(guest)
    const others = fetches.byInvocation.get(invocation)
    others?.delete(fetch)
    if (others?.size === 0) fetches.byInvocation.delete(invocation)
  }
}
