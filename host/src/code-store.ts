import type { GuestCode } from '@carpool/isolate'
import type { GuestOptions } from '@carpool/runtime/bridge'
import type { Load } from '@carpool/wire'

export interface StoredCode {
  readonly code: GuestCode
  readonly options: GuestOptions
}

/** The code of every revision that the server has given to this host. */
export class CodeStore {
  readonly #stored = new Map<string, StoredCode>()

  put(load: Load, source: string, codeCache: Uint8Array): void {
    const { revision, functionName, handlerExport, limits, env } = load
    this.#stored.set(revision, {
      // The cache is a view into a chunk of the connection, hence the copy.
      code: { source, filename: `${functionName}.js`, ...(codeCache.length > 0 && { codeCache: codeCache.slice() }) },
      options: { functionName, revision, limits, env, ...(handlerExport !== undefined && { handlerExport }) },
    })
  }

  /** @throws Error if the server named a revision before it gave its code */
  get(revision: string): StoredCode {
    const stored = this.#stored.get(revision)
    if (stored === undefined) throw new Error(`Revision ${revision} was not given to this host.`)
    return stored
  }

  delete(revision: string): void {
    this.#stored.delete(revision)
  }
}
