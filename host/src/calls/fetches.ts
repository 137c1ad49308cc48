import { FETCH_BODIES_BYTES, MAX_FETCHES_PER_INVOCATION, STREAM_WINDOW_BYTES } from '@carpool/core'
import type { BodyKind } from '@carpool/runtime/bridge'
import { LARGE_BYTES, type BodyTurns, type FetchSettled, type UnsentBody } from '@carpool/wire'
import type { Account } from '../accounting/account.ts'
import type { Guest } from '../isolates/guest.ts'
import { decodeBody, encodeBody } from '../isolates/guest-bridge.ts'
import type { Send } from '../send.ts'
import { FetchPace } from './fetch-pace.ts'
import type { Stream, Streams } from './streams.ts'

/** What a fetch of an ended invocation gives, as a FetchResult. */
const INVOCATION_ENDED = JSON.stringify({ ok: false, message: 'The invocation has ended.' })
const OVERRUN = JSON.stringify({ ok: false, message: 'More of the request body was sent than the other side takes.' })

/** Bodies of requests that all guests of the host may have under way, in multiples of what one may. */
const GUESTS = 8

interface FetchesParts {
  readonly send: Send
  readonly bodies: BodyTurns
  /** What was sent and has not left the process yet. */
  readonly backlogBytes: () => number
  readonly maxBodyBytes: number
  readonly streams: Streams
}

/** Carries the fetches of guests to the server and back, and counts their bytes. */
export class Fetches {
  readonly #send: Send
  readonly #bodies: BodyTurns
  readonly #backlogBytes: () => number
  readonly #maxBodyBytes: number
  readonly #streams: Streams
  readonly #open = new FetchTable()
  readonly #pace = new FetchPace()
  /** The bodies that have not left as a whole, by the numbers of their fetches. */
  readonly #unsent = new Map<number, UnsentBody>()

  constructor({ send, bodies, backlogBytes, maxBodyBytes, streams }: FetchesParts) {
    this.#send = send
    this.#bodies = bodies
    this.#backlogBytes = backlogBytes
    this.#maxBodyBytes = maxBodyBytes
    this.#streams = streams
  }

  /** @param id public id of the invocation, if the guest runs it */
  start(
    guest: Guest,
    { invocation, id, guestFetch }: { invocation: number; id: string | undefined; guestFetch: number },
    head: string,
    kind: BodyKind,
    body: string,
  ): void {
    const account = guest.accountOf(invocation)
    const refuse = (message: string): void =>
      guest.settleFetch(account, guestFetch, JSON.stringify({ ok: false, message }), 'none', '')
    // It would be refused where connections are made; on its way there it would hold up those of others.
    if (id !== undefined && this.#open.countOf(guest, invocation) >= MAX_FETCHES_PER_INVOCATION) {
      return refuse(`Too many fetches of this invocation are open; the limit is ${MAX_FETCHES_PER_INVOCATION} at once.`)
    }
    // Its length in bytes is at least that in UTF-16 units; to turn it into bytes takes the loop's time, and memory that nobody
    // is charged for.
    const guestBytes = Math.max(FETCH_BODIES_BYTES, this.#maxBodyBytes)
    if (this.#open.bytesOf(guest) + body.length > guestBytes || this.#open.bytes + body.length > guestBytes * GUESTS) {
      return refuse(`The request bodies of open fetches may have ${guestBytes} bytes together, not more.`)
    }
    // A fetch that was stopped at once is not open any more, but its body is on its way.
    if (body.length > 0 && this.#backlogBytes() > guestBytes) return refuse('Too many request bodies wait to be sent; try again.')
    const bytes = decodeBody(kind, body)
    if (bytes.length > this.#maxBodyBytes) {
      return refuse(`The request body has ${bytes.length} bytes; the limit is ${this.#maxBodyBytes}.`)
    }
    const beganAtMs = performance.now()
    const open = this.#open.add({ guest, guestFetch, invocation, account, beganAtMs, bytes: bytes.length })
    const fetch = open.number
    const streams = kind === 'stream'
    const message = {
      type: 'fetch',
      fetch,
      revision: guest.revision,
      ...(id !== undefined && { id }),
      ...(streams && { streams }),
    } as const
    // Nothing of the body leaves before the fetch has, or bodies of fetches that wait would pile up here.
    if (streams) open.stream = this.#openStream(open, 0)
    this.#pace.begin(guest.revision, fetch, () => {
      if (bytes.length < LARGE_BYTES) {
        this.#send(message, head, bytes)
        return open.stream?.credited(STREAM_WINDOW_BYTES)
      }
      const unsent = this.#bodies.enter(guest.holder, bytes, (sent) => {
        this.#unsent.delete(fetch)
        this.#send(message, head, sent)
      })
      if (unsent !== undefined) this.#unsent.set(fetch, unsent)
    })
  }

  /** The guest has aborted it. */
  stop(guest: Guest, guestFetch: number): void {
    const fetch = this.#open.stop(guest, guestFetch)
    if (fetch !== undefined) this.#stop(fetch)
  }

  /** The response has come, but for its body, which streams behind it. */
  headCame(number: number, head: string): void {
    const fetch = this.#open.get(number)
    if (fetch === undefined) return
    this.#answered(fetch)
    fetch.stream ??= this.#openStream(fetch)
    fetch.guest.fetchHead(fetch.account, fetch.guestFetch, head, fetch.stream)
  }

  /** Lets others begin, once: a response that streams has a head and an end. */
  #answered(fetch: OpenFetch): void {
    if (fetch.isAnswered) return
    fetch.isAnswered = true
    this.#pace.answered(fetch.guest.revision)
  }

  #openStream(fetch: OpenFetch, window = STREAM_WINDOW_BYTES): Stream {
    const { guest, guestFetch: guestNumber, number, account } = fetch
    const overran = (): void => {
      this.stop(guest, guestNumber)
      guest.settleFetch(account, guestNumber, OVERRUN, 'none', '', stream)
    }
    const stream = this.#streams.open({ of: 'fetch', number, guestNumber, account, listener: { overran }, window })
    stream.attach(guest)
    return stream
  }

  /** Stops what an invocation fetches that has ended. */
  stopOf(guest: Guest, invocation: number): void {
    for (const fetch of this.#open.takeOf(guest, invocation)) {
      const { guestFetch, account, stream } = fetch
      this.#stop(fetch)
      guest.settleFetch(account, guestFetch, INVOCATION_ENDED, 'none', '', stream)
    }
  }

  /** Stops the fetches of guests that are gone. */
  stopOrphans(): void {
    for (const fetch of this.#open.takeOrphans()) this.#stop(fetch)
  }

  /** Stops fetches of background work that have taken as long as an invocation may. */
  stopOverdueBackground(nowMs: number): void {
    const isBackground = ({ account, guest }: OpenFetch): boolean => account.open !== account || account === guest.background
    const isOver = (fetch: OpenFetch): boolean => nowMs - fetch.beganAtMs >= fetch.guest.limits.wallMs && isBackground(fetch)
    for (const fetch of this.#open.takeIf(isOver)) {
      const { guest, guestFetch, account, stream } = fetch
      this.#stop(fetch)
      guest.settleFetch(account, guestFetch, INVOCATION_ENDED, 'none', '', stream)
    }
  }

  #stop({ number: fetch, stream, account }: OpenFetch): void {
    const { sentBytes: bytesOut = 0, receivedBytes: bytesIn = 0 } = stream ?? {}
    stream?.close()
    // Its end, which would say how many went over connections, comes too late.
    account.sent(bytesOut)
    account.received(bytesIn)
    if (this.#pace.drop(fetch)) return
    const unsent = this.#unsent.get(fetch)
    if (unsent === undefined) return this.#send({ type: 'fetch-stop', fetch, bytesOut, bytesIn })
    this.#unsent.delete(fetch)
    unsent.drop()
  }

  settle(
    number: number,
    result: string,
    body: Uint8Array,
    { bytesOut, bytesIn }: Pick<FetchSettled, 'bytesOut' | 'bytesIn'>,
  ): void {
    const fetch = this.#open.take(number)
    if (fetch === undefined) return
    fetch.stream?.close()
    this.#answered(fetch)
    fetch.account.sent(bytesOut)
    fetch.account.received(bytesIn)
    fetch.guest.settleFetch(fetch.account, fetch.guestFetch, result, ...encodeBody(body), fetch.stream)
  }
}

/** What the table needs of a guest. */
export type FetchingGuest = Pick<Guest, 'disposed' | 'openFetches'>

export interface OpenFetch<G extends FetchingGuest = Guest> {
  /** Its number on the connection. */
  readonly number: number
  readonly guest: G
  /** The guest's own number for it. */
  readonly guestFetch: number
  /** The invocation for which the guest says that it fetches. */
  readonly invocation: number
  /** What its bytes are charged to. */
  readonly account: Account
  /** When it began, on the monotonic clock, in ms. */
  readonly beganAtMs: number
  /** Size of its body, if that does not stream. */
  readonly bytes: number
  /** Of what streams of it: the request's body, the response's, or both. */
  stream?: Stream
  /** Its response has begun, or it has ended. */
  isAnswered: boolean
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

  /** Open fetches of one invocation of a guest. */
  countOf(guest: G, invocation: number): number {
    return this.#byGuest.get(guest)?.byInvocation.get(invocation)?.size ?? 0
  }

  get(number: number): OpenFetch<G> | undefined {
    return this.#open.get(number)
  }

  add(given: Omit<OpenFetch<G>, 'number' | 'isAnswered'>): OpenFetch<G> {
    const fetch: OpenFetch<G> = { ...given, number: ++this.#last, isAnswered: false }
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
    return fetch
  }

  /** Takes a fetch out by its number on the connection. */
  take(number: number): OpenFetch<G> | undefined {
    const fetch = this.#open.get(number)
    if (fetch !== undefined) this.#remove(fetch)
    return fetch
  }

  /** Takes a fetch out by its guest's number. */
  stop(guest: G, guestFetch: number): OpenFetch<G> | undefined {
    const fetch = this.#byGuest.get(guest)?.byGuestFetch.get(guestFetch)
    if (fetch !== undefined) this.#remove(fetch)
    return fetch
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
