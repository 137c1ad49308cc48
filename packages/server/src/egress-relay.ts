import type { Egress, EgressResult } from '@carpool/egress'
import { NO_BODY, type Fetch } from '@carpool/wire'
import { parseFetchHead } from './fetch-head.ts'

/** What the relay needs of a host process. */
export interface FetchingHost {
  settleFetch(fetch: number, result: string, body: Uint8Array): void
}

/** Carries the fetches of functions from the hosts to the egress, and the results back. */
export class EgressRelay {
  readonly #egress: Egress
  readonly #open = new WeakMap<FetchingHost, Map<number, AbortController>>()
  readonly #gone = new WeakSet<FetchingHost>()

  constructor(egress: Egress) {
    this.#egress = egress
  }

  /** Settles the fetch in the host, unless it is stopped before. Never rejects, whatever the host sent. */
  async start(host: FetchingHost, { fetch }: Pick<Fetch, 'fetch'>, head: string, body: Uint8Array): Promise<void> {
    // What a host sent can come in after its end was noticed.
    if (this.#gone.has(host)) return
    const open = this.#open.get(host) ?? new Map<number, AbortController>()
    // A host that uses a number twice has only itself to blame, but the first fetch must not be lost sight of.
    open.get(fetch)?.abort()
    const controller = new AbortController()
    this.#open.set(host, open.set(fetch, controller))
    const { body: resultBody, ...result } = { body: NO_BODY, ...(await this.#carryOut(head, body, controller.signal)) }
    if (open.get(fetch) !== controller) return
    open.delete(fetch)
    host.settleFetch(fetch, JSON.stringify(result), resultBody)
  }

  stop(host: FetchingHost, fetch: number): void {
    const open = this.#open.get(host)
    const controller = open?.get(fetch)
    open?.delete(fetch)
    controller?.abort()
  }

  /** The host is gone, or about to be ended: nobody waits for its fetches, and it starts no more. */
  stopAll(host: FetchingHost): void {
    this.#gone.add(host)
    const open = this.#open.get(host)
    if (open === undefined) return
    const controllers = [...open.values()]
    open.clear()
    for (const controller of controllers) controller.abort()
  }

  async #carryOut(text: string, body: Uint8Array, signal: AbortSignal): Promise<EgressResult> {
    const head = parseFetchHead(text)
    if (typeof head === 'string') return { ok: false, message: head }
    // The body is a view into a chunk of the connection, and has to outlive the turn.
    return this.#egress.fetch({ ...head, body: body.slice() }, signal)
  }
}
