import type { GuestCode } from './guest-isolate.ts'
import type { GuestOptions } from '@carpool/runtime/bridge'
import type { Load } from '@carpool/wire'
import { LoadFailure } from './load-failure.ts'

export interface StoredCode {
  readonly code: GuestCode
  readonly options: GuestOptions
}

/** The code of every revision that the server has given to this host. */
export class CodeStore {
  readonly #stored = new Map<string, StoredCode>()
  readonly #forAll: Pick<GuestOptions, 'maxBodyBytes' | 'clock' | 'webAssembly'>

  /** @param forAll what every guest is given */
  constructor(forAll: Pick<GuestOptions, 'maxBodyBytes' | 'clock' | 'webAssembly'>) {
    this.#forAll = forAll
  }

  put(load: Load, source: string, codeCache: Uint8Array): void {
    const { revision, functionName, handlerExport, limits, env } = load
    this.#stored.set(revision, {
      // The cache is a view into a chunk of the connection, hence the copy.
      code: { source, filename: `${functionName}.js`, ...(codeCache.length > 0 && { codeCache: codeCache.slice() }) },
      options: {
        functionName,
        revision,
        limits,
        env,
        ...this.#forAll,
        ...(handlerExport !== undefined && { handlerExport }),
      },
    })
  }

  find(revision: string): StoredCode | undefined {
    return this.#stored.get(revision)
  }

  /** @throws LoadFailure if the server retired the revision meanwhile, or never gave its code */
  get(revision: string): StoredCode {
    const stored = this.#stored.get(revision)
    if (stored === undefined) throw new LoadFailure('The host does not have the code of the revision.')
    return stored
  }

  delete(revision: string): void {
    this.#stored.delete(revision)
  }
}
