import type { FailedOutcome } from '@carpool/core'
import { CodeCache, type GuestCode } from './guest-isolate.ts'
import type { GuestOptions } from '@carpool/runtime/bridge'
import type { Load } from '@carpool/wire'
import { BatchCost } from '../scheduler/batch.ts'

export interface StoredCode {
  readonly owner: string
  readonly code: GuestCode
  readonly options: GuestOptions
  readonly cost: BatchCost
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
    const { revision, functionName, owner, handlerExport, limits, env } = load
    this.#stored.set(revision, {
      owner,
      code: { source, filename: `${functionName}.js`, ...(codeCache.length > 0 && { codeCache: new CodeCache(codeCache) }) },
      options: {
        functionName,
        revision,
        limits,
        env,
        ...this.#forAll,
        ...(handlerExport !== undefined && { handlerExport }),
      },
      cost: new BatchCost(),
    })
  }

  /** Has a revision loaded with another code cache from now on. Without effect on one that is not stored any more. */
  setCodeCache(revision: string, codeCache: Uint8Array): void {
    const stored = this.#stored.get(revision)
    if (stored === undefined) return
    this.#stored.set(revision, { ...stored, code: { ...stored.code, codeCache: new CodeCache(codeCache) } })
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

/** Longest text of a failure, in UTF-16 units: more than the guest sends. What V8 says may quote code of any length. */
const TEXT_CHARS = 16 * 1024

function cut(text: string): string {
  return text.length <= TEXT_CHARS ? text : `${text.slice(0, TEXT_CHARS)}… (${text.length - TEXT_CHARS} more characters)`
}

/** Why a revision could not be brought up in an isolate. */
export class LoadFailure extends Error {
  override readonly name = 'LoadFailure'
  readonly outcome: FailedOutcome
  readonly code: 'load-failed' | 'no-handler'
  /** Stack of the user's error, in positions of the bundle; empty if there was none. */
  readonly guestStack: string
  #cpuNs = 0

  constructor(
    message: string,
    options: { outcome?: FailedOutcome; code?: 'load-failed' | 'no-handler'; guestStack?: string } = {},
  ) {
    // isolated-vm says where it was when the compiler gave up, which tells an author nothing.
    super(cut(message).replaceAll(' [<isolated-vm>:0:0]', ''))
    this.outcome = options.outcome ?? 'load-failed'
    this.code = options.code ?? 'load-failed'
    this.guestStack = cut(options.guestStack ?? '')
  }

  /** It took so much CPU to fail. */
  charge(cpuNs: number): void {
    this.#cpuNs += cpuNs
  }

  /** What it took, for the first that asks: several may have waited for the one start. */
  takeCpuNs(): number {
    const cpuNs = this.#cpuNs
    this.#cpuNs = 0
    return cpuNs
  }
}

export function asLoadFailure(cause: unknown): LoadFailure {
  return cause instanceof LoadFailure
    ? cause
    : new LoadFailure('The function could not be loaded.', { guestStack: String(cause) })
}
