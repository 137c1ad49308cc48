import { CarpoolError, type InvocationResult } from '@carpool/core'
import type { StartResult } from '@carpool/wire'

const LOST_START: StartResult = {
  ok: false,
  code: 'load-failed',
  message: 'The host process died while it loaded the function.',
  stack: '',
}

/** What a server waits for from one host process. When the host is lost, everything that waits is answered at once. */
export class PendingReplies {
  readonly #answers = new Map<number, (result: InvocationResult) => void>()
  readonly #starts = new Map<string, Array<(result: StartResult) => void>>()
  readonly #compiles = new Map<string, (codeCache: Uint8Array | undefined) => void>()
  readonly #ready = Promise.withResolvers<void>()
  #lastInvocation = 0
  #lost = false

  get invocations(): number {
    return this.#answers.size
  }

  get lost(): boolean {
    return this.#lost
  }

  expectReady(): Promise<void> {
    // Whoever does not wait for it must not be told by an unhandled rejection.
    this.#ready.promise.catch(() => {})
    return this.#ready.promise
  }

  ready(): void {
    this.#ready.resolve()
  }

  /** Numbers a new invocation and waits for how it ends. */
  expectAnswer(): [invocation: number, result: Promise<InvocationResult>] {
    const invocation = ++this.#lastInvocation
    const result = new Promise<InvocationResult>((resolve) => {
      if (this.#lost) resolve(hostLost())
      else this.#answers.set(invocation, resolve)
    })
    return [invocation, result]
  }

  /** An answer to a number that does not wait (any more) is dropped: the host runs user code and may say anything. */
  answer(invocation: number, result: InvocationResult): void {
    const resolve = this.#answers.get(invocation)
    if (resolve === undefined) return
    this.#answers.delete(invocation)
    resolve(result)
  }

  expectStarted(revision: string): Promise<StartResult> {
    return new Promise((resolve) => {
      if (this.#lost) return resolve(LOST_START)
      const waiting = this.#starts.get(revision)
      if (waiting === undefined) this.#starts.set(revision, [resolve])
      else waiting.push(resolve)
    })
  }

  /** Replies come in the order of the requests. */
  started(revision: string, result: StartResult): void {
    this.#starts.get(revision)?.shift()?.(result)
  }

  expectCompiled(revision: string): Promise<Uint8Array | undefined> {
    return new Promise((resolve) => {
      if (this.#lost) resolve(undefined)
      else this.#compiles.set(revision, resolve)
    })
  }

  compiled(revision: string, codeCache: Uint8Array | undefined): void {
    this.#compiles.get(revision)?.(codeCache)
    this.#compiles.delete(revision)
  }

  lose(): void {
    this.#lost = true
    this.#ready.reject(new CarpoolError('no-host', 'The host process died before it was ready.'))
    for (const resolve of this.#answers.values()) resolve(hostLost())
    for (const resolve of [...this.#starts.values()].flat()) resolve(LOST_START)
    for (const resolve of this.#compiles.values()) resolve(undefined)
    this.#answers.clear()
    this.#starts.clear()
    this.#compiles.clear()
  }
}

function hostLost(): InvocationResult {
  return { outcome: 'host-lost', start: 'warm', detail: 'The host process died while it ran the invocation.' }
}
