import { DOMException } from '../errors/dom-exception.ts'
import { reportUncaught } from '../errors/report-uncaught.ts'
import { apply, arraySlice, arraySplice, SafeTypeError } from '../primordials.ts'
import type { AbortSignal } from './abort-signal.ts'
import { dispatchOf, Event } from './event.ts'
import { toText } from '../to-text.ts'

export type Listener = ((event: Event) => unknown) | { handleEvent(event: Event): unknown }

interface ListenerOptions {
  capture?: boolean
  once?: boolean
  passive?: boolean
  signal?: AbortSignal
}

interface Registration {
  readonly type: string
  readonly listener: Listener
  readonly capture: boolean
  readonly once: boolean
  readonly passive: boolean
  removed: boolean
}

export class EventTarget {
  /** Absent until the first listener: most signals never have one. */
  #registrations: Registration[] | undefined

  addEventListener(type: unknown, listener: Listener | null, options?: ListenerOptions | boolean | null): void {
    const capture = captureOf(options)
    const { once, passive, signal } = typeof options === 'object' && options !== null ? options : {}
    if (listener === null || listener === undefined) return
    if (typeof listener !== 'function' && typeof listener !== 'object') {
      throw new SafeTypeError('A listener must be a function or an object with handleEvent.')
    }
    if (signal?.aborted) return
    const list = (this.#registrations ??= [])
    const name = toText(type)
    if (find(list, name, listener, capture) !== -1) return
    list[list.length] = {
      type: name,
      listener,
      capture,
      once: Boolean(once),
      passive: Boolean(passive),
      removed: false,
    }
    signal?.addEventListener('abort', () => this.removeEventListener(name, listener, capture), { once: true })
  }

  removeEventListener(type: unknown, listener: Listener | null, options?: ListenerOptions | boolean | null): void {
    const list = this.#registrations
    if (list === undefined || listener === null) return
    const index = find(list, toText(type), listener, captureOf(options))
    if (index === -1) return
    list[index]!.removed = true
    arraySplice(list, index, 1)
  }

  /**
   * Calls the listeners in order. What one throws is logged and stops none of the others.
   * @returns false if a listener prevented the default
   */
  dispatchEvent(event: Event): boolean {
    if (!(event instanceof Event)) throw new SafeTypeError('dispatchEvent needs an Event.')
    const state = dispatchOf(event)
    if (state.dispatching) throw new DOMException('The event is being dispatched already.', 'InvalidStateError')
    state.target = this
    state.currentTarget = this
    state.dispatching = true
    const list = this.#registrations === undefined ? [] : arraySlice(this.#registrations)
    for (let index = 0; index < list.length && !state.stoppedAtOnce; index++) {
      const registration = list[index]!
      if (registration.removed || registration.type !== event.type) continue
      if (registration.once) this.removeEventListener(registration.type, registration.listener, registration.capture)
      state.passive = registration.passive
      call(registration.listener, this, event)
      state.passive = false
    }
    state.currentTarget = null
    state.dispatching = false
    state.stopped = false
    state.stoppedAtOnce = false
    return !state.canceled
  }

  get [Symbol.toStringTag](): string {
    return 'EventTarget'
  }
}

function call(listener: Listener, target: EventTarget, event: Event): void {
  try {
    if (typeof listener === 'function') apply(listener, target, [event])
    else listener.handleEvent(event)
  } catch (error) {
    reportUncaught(error, `error in a listener of "${event.type}"`)
  }
}

function find(list: readonly Registration[], type: string, listener: Listener, capture: boolean): number {
  for (let index = 0; index < list.length; index++) {
    const registration = list[index]!
    if (registration.type === type && registration.listener === listener && registration.capture === capture) return index
  }
  return -1
}

function captureOf(options: ListenerOptions | boolean | null | undefined): boolean {
  return typeof options === 'object' ? Boolean(options?.capture) : Boolean(options)
}
