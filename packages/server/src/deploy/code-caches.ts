import { CarpoolError, type Revision } from '@carpool/core'
import type { Fleet, RevisionCode } from '@carpool/fleet'
import type { Registry } from '@carpool/registry'
import type { Logger } from 'pino'

export interface CodeCacheParts {
  readonly registry: Registry
  readonly codeOf: (revision: Revision) => Promise<RevisionCode>
  readonly log: Pick<Logger, 'info' | 'warn'>
}

type Hosts = Pick<Fleet, 'smokeTest' | 'useCodeCache' | 'isOverloaded'>

/**
 * Makes the code cache of a live revision anew that has none which V8 takes: since another version of Node.js runs, or because
 * it was damaged, or could not be made at the deploy. As at a deploy, it is made in a host process that runs nothing else.
 */
export class CodeCaches {
  readonly #parts: CodeCacheParts
  /**
   * By function, the revision for which it was tried: what V8 has rejected once, or cannot be made, is not made again and
   * again.
   */
  readonly #tried = new Map<string, string>()
  #hosts: Hosts | undefined
  /** One at a time: deploys come first, and calls. */
  #last: Promise<void> = Promise.resolve()

  constructor(parts: CodeCacheParts) {
    this.#parts = parts
    parts.registry.onRouteChange(({ functionName }) => this.#tried.delete(functionName))
  }

  /** Before hosts can tell of anything. */
  useFleet(hosts: Hosts): void {
    this.#hosts = hosts
  }

  /** Resolves when what was begun is done. */
  get settled(): Promise<void> {
    return this.#last
  }

  /**
   * A host has loaded a revision without a code cache. Any host may say so of any revision that it was given, as often as it
   * likes.
   */
  missing(revision: Revision): void {
    const { functionName, id } = revision
    const hosts = this.#hosts
    // When there is time for it, it is missing again.
    if (hosts === undefined || hosts.isOverloaded || this.#tried.get(functionName) === id || !this.#isServed(revision)) return
    this.#tried.set(functionName, id)
    this.#last = this.#last.then(() => this.#make(hosts, revision))
  }

  async #make(hosts: Hosts, revision: Revision): Promise<void> {
    const { registry, codeOf, log } = this.#parts
    if (!this.#isServed(revision)) return
    const { functionName, id } = revision
    try {
      const { source, secrets } = await codeOf(revision)
      const { codeCache } = await hosts.smokeTest(revision.owner, { ...revision, env: { ...revision.env, ...secrets } }, source)
      if (codeCache === undefined || !(await registry.replaceCodeCache(revision, codeCache))) return
      hosts.useCodeCache(id, codeCache)
      log.info({ functionName, revision: id }, 'code cache made anew')
    } catch (cause) {
      if (cause instanceof CarpoolError && cause.code === 'draining') return
      log.warn(
        { functionName, revision: id, err: cause },
        'code cache could not be made: the code is compiled at each cold start',
      )
    }
  }

  #isServed({ functionName, id }: Revision): boolean {
    const { registry } = this.#parts
    return registry.find(functionName)?.id === id && registry.disabledInfo(functionName) === undefined
  }
}
