import type { Egress } from '@carpool/egress'
import type { HostProcess } from '@carpool/fleet'
import type { FetchHead } from '@carpool/runtime/bridge'
import { NO_BODY, type Fetch } from '@carpool/wire'

/** Carries the fetches of functions from the hosts to the egress, and the results back. */
export class EgressRelay {
  readonly #egress: Egress
  readonly #open = new WeakMap<HostProcess, Map<number, AbortController>>()

  constructor(egress: Egress) {
    this.#egress = egress
  }

  async start(host: HostProcess, { fetch }: Fetch, head: string, body: Uint8Array): Promise<void> {
    const open = this.#open.get(host) ?? new Map<number, AbortController>()
    const controller = new AbortController()
    this.#open.set(host, open.set(fetch, controller))
    // The body is a view into a chunk of the connection, and has to outlive the turn.
    const request = { ...(JSON.parse(head) as FetchHead), body: body.slice() }
    const { body: resultBody, ...result } = { body: NO_BODY, ...(await this.#egress.fetch(request, controller.signal)) }
    if (open.delete(fetch)) host.settleFetch(fetch, JSON.stringify(result), resultBody)
  }

  stop(host: HostProcess, fetch: number): void {
    const open = this.#open.get(host)
    const controller = open?.get(fetch)
    open?.delete(fetch)
    controller?.abort()
  }

  /** The host is gone: nobody waits for its fetches. */
  stopAll(host: HostProcess): void {
    for (const controller of this.#open.get(host)?.values() ?? []) controller.abort()
    this.#open.delete(host)
  }
}
