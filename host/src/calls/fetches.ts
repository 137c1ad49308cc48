import type { BodyKind } from '@carpool/runtime/bridge'
import type { FetchSettled } from '@carpool/wire'
import { decodeBody, encodeBody } from './body-codec.ts'
import { FetchPace } from './fetch-pace.ts'
import { FetchTable, type OpenFetch } from './fetch-table.ts'
import type { Guest } from '../isolates/guest.ts'
import type { Send } from '../send.ts'

/** What a fetch of an ended invocation gives, as a FetchResult. */
const INVOCATION_ENDED = JSON.stringify({ ok: false, message: 'The invocation has ended.' })

/** Bodies of requests that one guest may have under way, in bytes; more where a single one may be so large, */
const GUEST_BYTES = 32 * 1024 * 1024
/** and all guests of the host, in multiples of that. */
const GUESTS = 8

/** Carries the fetches of guests to the server and back, and counts their bytes. */
export class Fetches {
  readonly #send: Send
  readonly #backlogBytes: () => number
  readonly #maxBodyBytes: number
  readonly #open = new FetchTable()
  readonly #pace = new FetchPace<Guest>()

  /** @param parts what is sent, how much of that has not left the process yet, and the largest body */
  constructor({ send, backlogBytes, maxBodyBytes }: { send: Send; backlogBytes: () => number; maxBodyBytes: number }) {
    this.#send = send
    this.#backlogBytes = backlogBytes
    this.#maxBodyBytes = maxBodyBytes
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
    // Its length in bytes is at least that in UTF-16 units; to turn it into bytes takes the loop's time, and their memory is nobody's.
    const guestBytes = Math.max(GUEST_BYTES, this.#maxBodyBytes)
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
    const fetch = this.#open.add({ guest, guestFetch, invocation, account, beganAtMs, bytes: bytes.length })
    const message = { type: 'fetch', fetch, revision: guest.revision, ...(id !== undefined && { id }) } as const
    this.#pace.begin(guest, fetch, () => this.#send(message, head, bytes))
  }

  /** The guest does not wait for it any more. */
  stop(guest: Guest, guestFetch: number): void {
    const fetch = this.#open.stop(guest, guestFetch)
    if (fetch !== undefined) this.#stop(fetch)
  }

  /** Nobody waits for what an invocation fetches. */
  stopOf(guest: Guest, invocation: number): void {
    for (const { number, guestFetch, account } of this.#open.takeOf(guest, invocation)) {
      this.#stop(number)
      guest.settleFetch(account, guestFetch, INVOCATION_ENDED, 'none', '')
    }
  }

  /** Stops what guests wait for that are gone. */
  stopOrphans(): void {
    for (const { number } of this.#open.takeOrphans()) this.#stop(number)
  }

  /** Stops what nobody waits for and has taken as long as an invocation may. */
  stopForgotten(nowMs: number): void {
    const isForgotten = ({ account, guest }: OpenFetch): boolean => account.open !== account || account === guest.background
    const isOver = (fetch: OpenFetch): boolean => nowMs - fetch.beganAtMs >= fetch.guest.limits.wallMs && isForgotten(fetch)
    for (const { number, guest, guestFetch, account } of this.#open.takeIf(isOver)) {
      this.#stop(number)
      guest.settleFetch(account, guestFetch, INVOCATION_ENDED, 'none', '')
    }
  }

  #stop(fetch: number): void {
    if (!this.#pace.drop(fetch)) this.#send({ type: 'fetch-stop', fetch })
  }

  settle(
    number: number,
    result: string,
    body: Uint8Array,
    { bytesOut, bytesIn }: Pick<FetchSettled, 'bytesOut' | 'bytesIn'>,
  ): void {
    const fetch = this.#open.take(number)
    if (fetch === undefined) return
    fetch.account.sent(bytesOut)
    fetch.account.received(bytesIn)
    fetch.guest.settleFetch(fetch.account, fetch.guestFetch, result, ...encodeBody(body))
  }
}
