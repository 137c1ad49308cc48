import { CarpoolError } from '@carpool/core'
import type { StartResult } from '@carpool/wire'
import { concurrencyLimit, concurrencyLimitByKey } from '../scaling/concurrency-limit.ts'
import type { HostProcess } from './host-process.ts'
import type { HostRevision } from './host-types.ts'

/** What a try-out of new code found. */
export interface TryOut {
  readonly result: StartResult
  readonly codeCache: Uint8Array | undefined
}

/** Deploys that are tried out at the same time: each takes a process and up to a core. */
const MAX_TRY_OUTS = 2

/**
 * Compiles and loads new code in host processes of their own, which end afterwards: whatever the code does, no running function feels it.
 * The code cache is made before any of the code runs.
 */
export class TryOuts {
  readonly #start: () => HostProcess
  readonly #hosts = new Set<HostProcess>()
  readonly #limit = concurrencyLimit(MAX_TRY_OUTS)
  /** One at a time of each owner, so that nobody takes all places. */
  readonly #limitOfOwner = concurrencyLimitByKey(1)
  #isClosed = false

  /** @param start starts a process that serves nobody. @throws CarpoolError `no-host` */
  constructor(start: () => HostProcess) {
    this.#start = start
  }

  get hosts(): Iterable<HostProcess> {
    return this.#hosts
  }

  /** @throws CarpoolError `draining` once it is closed */
  run(owner: string, revision: HostRevision, source: string): Promise<TryOut> {
    return this.#limitOfOwner(owner, () => this.#limit(() => this.#tryOut(revision, source)))
  }

  async #tryOut(revision: HostRevision, source: string): Promise<TryOut> {
    if (this.#isClosed) throw new CarpoolError('draining', 'The server is shutting down.')
    const host = this.#start()
    this.#hosts.add(host)
    try {
      await host.ready
      host.connection.give(revision, { source })
      const codeCache = await host.connection.compile(revision.id)
      return { codeCache, result: await host.connection.start(revision) }
    } finally {
      host.stop()
      host.kill()
      void host.ended.then(() => this.#hosts.delete(host))
    }
  }

  /** Starts no more. */
  close(): void {
    this.#isClosed = true
  }
}
