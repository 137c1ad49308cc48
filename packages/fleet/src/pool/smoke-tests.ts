import { setTimeout as delay } from 'node:timers/promises'
import { CarpoolError, concurrencyLimitOfOwners } from '@carpool/core'
import type { StartResult } from '@carpool/wire'
import type { HostRevision } from './host-connection.ts'
import type { HostProcess } from './host-process.ts'

/** What a smoke test of new code found. */
export interface SmokeTestResult {
  readonly result: StartResult
  /** V8's, with what module scope and handler have run; undefined if it did not start, or there is none for another reason. */
  readonly codeCache: Uint8Array | undefined
}

/** Smoke tests at the same time: each takes a process and up to a core. */
const MAX_TESTS = 2
/** A deploy waits no longer than this for a call of the handler and the code cache after that, in ms. */
const REHEARSAL_MS = 1_000

/**
 * Compiles and loads new code in host processes of their own, which end afterwards: whatever the code does, no running
 * function feels it. The code cache is made there too, after the module scope has run and the handler was called, so that it
 * holds what those need: a function that has taken such a process over has its own code cache in its hands, and nobody else's.
 */
export class SmokeTests {
  readonly #start: () => HostProcess
  readonly #hosts = new Set<HostProcess>()
  readonly #inTurn = concurrencyLimitOfOwners(MAX_TESTS)
  #isClosed = false

  /** @param start starts a process that serves nobody. @throws CarpoolError `no-host` */
  constructor(start: () => HostProcess) {
    this.#start = start
  }

  get hosts(): Iterable<HostProcess> {
    return this.#hosts
  }

  /** @throws CarpoolError `draining` once it is closed */
  run(owner: string, revision: HostRevision, source: string): Promise<SmokeTestResult> {
    return this.#inTurn(owner, () => this.#test(revision, source))
  }

  async #test(revision: HostRevision, source: string): Promise<SmokeTestResult> {
    if (this.#isClosed) throw new CarpoolError('draining', 'The server is shutting down.')
    const host = this.#start()
    this.#hosts.add(host)
    try {
      await host.ready
      host.connection.give(revision, { source })
      const result = await host.connection.start(revision)
      return { result, codeCache: result.ok ? await makeCodeCache(host, revision.id, source) : undefined }
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

/**
 * What the handler runs is in it as well, unless the call of it takes too long or ends the isolate: nothing of that call leaves
 * its isolate, and it may do what it likes in a process that ends with it.
 */
async function makeCodeCache({ connection }: HostProcess, revision: string, source: string): Promise<Uint8Array | undefined> {
  const loaded = await connection.makeCodeCache(revision, false)
  const tooLate = delay(REHEARSAL_MS, undefined, { ref: false })
  const rehearsed = await Promise.race([connection.makeCodeCache(revision, true), tooLate])
  return [rehearsed, loaded].find((made) => made !== undefined && !isTooLarge(made, source))
}

/** What V8 makes of code in which everything has run is two to three times as long; the rest is for code of a few lines. */
function isTooLarge(codeCache: Uint8Array, source: string): boolean {
  return codeCache.length > 64 * 1024 + 4 * source.length
}
