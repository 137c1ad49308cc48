import type { Revision } from '@carpool/core'
import type { Registry } from '@carpool/registry'

/** How long a revision that is not live any more may run on: longer than a retired isolate lingers and an invocation lasts. */
export const REMEMBER_MS = 16 * 60_000

/** The revisions that hosts may report of: the live ones, and those that were until lately. A deleted function has none. */
export class KnownRevisions {
  readonly #known = new Map<string, Revision>()

  constructor(registry: Registry) {
    for (const revision of registry.list()) this.#known.set(revision.id, revision)
    registry.onRouteChange(({ previous, current }) => {
      if (current !== undefined) this.#known.set(current.id, current)
      if (previous === undefined) return
      if (current === undefined) return void this.#known.delete(previous.id)
      setTimeout(() => {
        if (registry.find(previous.functionName)?.id !== previous.id) this.#known.delete(previous.id)
      }, REMEMBER_MS).unref()
    })
  }

  find(id: string): Revision | undefined {
    return this.#known.get(id)
  }
}
