import type { InvocationRecord } from '@carpool/core'

/** Invocations by the host in which they ran. */
export class HostCounts {
  #invocations = new Map<number, number>()

  recorded({ host, outcome }: InvocationRecord): void {
    if (host === 0 || outcome === 'refused') return
    this.#invocations.set(host, this.of(host) + 1)
  }

  of(host: number): number {
    return this.#invocations.get(host) ?? 0
  }

  /** Forgets all hosts but these. */
  keep(hosts: ReadonlySet<number>): void {
    for (const host of this.#invocations.keys()) if (!hosts.has(host)) this.#invocations.delete(host)
  }
}
