import type { BodyKind } from '@carpool/runtime/bridge'
import { decodeBody, encodeBody } from './body-codec.ts'
import { FetchTable } from './fetch-table.ts'
import type { Guest } from './guest.ts'
import type { Send } from './send.ts'

/** What a fetch of an ended invocation gives, as a FetchResult. */
const INVOCATION_ENDED = JSON.stringify({ ok: false, message: 'The invocation has ended.' })

/** Carries the fetches of guests to the server and back, and counts their bytes. */
export class Fetches {
  readonly #send: Send
  readonly #maxBodyBytes: number
  readonly #open = new FetchTable()

  constructor(send: Send, maxBodyBytes: number) {
    this.#send = send
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
    const bytes = decodeBody(kind, body)
    if (bytes.length > this.#maxBodyBytes) {
      const message = `The request body has ${bytes.length} bytes; the limit is ${this.#maxBodyBytes}.`
      return guest.settleFetch(account, guestFetch, JSON.stringify({ ok: false, message }), 'none', '')
    }
    account.sent(bytes.length)
    const fetch = this.#open.add(guest, guestFetch, invocation, account)
    this.#send({ type: 'fetch', fetch, revision: guest.revision, ...(id !== undefined && { id }) }, head, bytes)
  }

  /** The guest does not wait for it any more. */
  stop(guest: Guest, guestFetch: number): void {
    const fetch = this.#open.stop(guest, guestFetch)
    if (fetch !== undefined) this.#send({ type: 'fetch-stop', fetch })
  }

  /** Nobody waits for what an invocation fetches. */
  stopOf(guest: Guest, invocation: number): void {
    for (const { number, guestFetch, account } of this.#open.takeOf(guest, invocation)) {
      this.#send({ type: 'fetch-stop', fetch: number })
      guest.settleFetch(account, guestFetch, INVOCATION_ENDED, 'none', '')
    }
  }

  /** Stops what guests wait for that are gone. */
  stopOrphans(): void {
    for (const { number } of this.#open.takeOrphans()) this.#send({ type: 'fetch-stop', fetch: number })
  }

  settle(number: number, result: string, body: Uint8Array): void {
    const fetch = this.#open.take(number)
    if (fetch === undefined) return
    fetch.account.received(body.length)
    fetch.guest.settleFetch(fetch.account, fetch.guestFetch, result, ...encodeBody(body))
  }
}
