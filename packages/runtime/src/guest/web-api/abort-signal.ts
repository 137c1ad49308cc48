import { SafeSet, SafeTypeError } from '../language/primordials.ts'
import { valuesOf } from '../language/values.ts'
import { setTimeout } from './host.ts'
import { DOMException } from './dom-exception.ts'
import { addListener, dispatch, Event, EventTarget, removeListener, trusted } from './events.ts'

/** Proves to the constructor that the runtime makes the signal: user code gets them from a controller only. */
const INTERNAL = Symbol('internal')

/** Makes a signal that is not aborted. */
export let createSignal: () => AbortSignal
/** Aborts a signal and what depends on it, once; `reason` undefined gives an AbortError. */
export let abortSignal: (signal: AbortSignal, reason?: unknown) => void
/** Calls `onAbort` before any listener of user code; the returned function takes it back. */
export let followSignal: (signal: AbortSignal, onAbort: () => void) => () => void
export let isAbortSignal: (value: unknown) => value is AbortSignal
export let isAborted: (signal: AbortSignal) => boolean
export let reasonOf: (signal: AbortSignal) => unknown

export class AbortSignal extends EventTarget {
  #aborted = false
  #reason: unknown
  #followers: SafeSet<() => void> | undefined
  #onabort: ((event: Event) => unknown) | null = null

  static {
    createSignal = () => new AbortSignal(INTERNAL)
    abortSignal = (signal, reason) => signal.#abort(reason)
    isAbortSignal = (value): value is AbortSignal => typeof value === 'object' && value !== null && #aborted in value
    isAborted = (signal) => signal.#aborted
    reasonOf = (signal) => signal.#reason
    followSignal = (signal, onAbort) => {
      const followers = (signal.#followers ??= new SafeSet())
      followers.add(onAbort)
      return () => void followers.delete(onAbort)
    }
  }

  constructor(proof?: unknown) {
    if (proof !== INTERNAL) throw new SafeTypeError('An AbortSignal comes from an AbortController.')
    super()
  }

  static abort(reason?: unknown): AbortSignal {
    const signal = createSignal()
    signal.#abort(reason)
    return signal
  }

  static timeout(milliseconds: number): AbortSignal {
    const signal = createSignal()
    setTimeout(() => signal.#abort(new DOMException('The time is up.', 'TimeoutError')), milliseconds)
    return signal
  }

  static any(signals: Iterable<AbortSignal>): AbortSignal {
    const result = createSignal()
    const sources = valuesOf(signals)
    for (let index = 0; index < sources.length; index++) {
      if (!isAbortSignal(sources[index])) throw new SafeTypeError('AbortSignal.any takes AbortSignals only.')
    }
    for (let index = 0; index < sources.length; index++) {
      const source = sources[index]!
      if (!source.#aborted) continue
      result.#abort(source.#reason)
      return result
    }
    const leave = new SafeSet<() => void>()
    for (let index = 0; index < sources.length; index++) {
      const source = sources[index]!
      leave.add(
        followSignal(source, () => {
          leave.forEach((release) => release())
          result.#abort(source.#reason)
        }),
      )
    }
    return result
  }

  get aborted(): boolean {
    return this.#aborted
  }

  get reason(): unknown {
    return this.#reason
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason
  }

  get onabort(): ((event: Event) => unknown) | null {
    return this.#onabort
  }

  set onabort(listener: ((event: Event) => unknown) | null) {
    if (this.#onabort !== null) removeListener(this, 'abort', this.#onabort)
    this.#onabort = typeof listener === 'function' ? listener : null
    if (this.#onabort !== null) addListener(this, 'abort', this.#onabort)
  }

  #abort(reason: unknown): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason === undefined ? new DOMException('The operation was aborted.', 'AbortError') : reason
    const followers = this.#followers
    this.#followers = undefined
    followers?.forEach((follower) => follower())
    dispatch(this, trusted(new Event('abort')))
  }

  override get [Symbol.toStringTag](): string {
    return 'AbortSignal'
  }
}

export class AbortController {
  readonly #signal = createSignal()

  get signal(): AbortSignal {
    return this.#signal
  }

  abort(reason?: unknown): void {
    abortSignal(this.#signal, reason)
  }

  get [Symbol.toStringTag](): string {
    return 'AbortController'
  }
}
