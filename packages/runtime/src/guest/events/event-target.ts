import { DOMException } from '../errors/dom-exception.ts'
import { reportUncaught } from '../errors/report-uncaught.ts'
import { apply, arraySplice, type List, SafeList, SafeTypeError } from '../primordials.ts'
import { type AbortSignal, followSignal, isAborted, isAbortSignal } from './abort-signal.ts'
import { dispatchOf, type Event, isEvent, typeOf } from './event.ts'
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

const NO_OPTIONS = { __proto__: null } as ListenerOptions

/** What the methods of the same names do, for the runtime: user code may have replaced those. */
export let addListener: (target: EventTarget, type: string, listener: Listener) => void
export let removeListener: (target: EventTarget, type: string, listener: Listener) => void
export let dispatch: (target: EventTarget, event: Event) => boolean

export class EventTarget {
  /** Absent until the first listener: most signals never have one. */
  #registrations: List<Registration> | undefined

  static {
    addListener = (target, type, listener) => void target.#add(type, listener, false, false, false)
    removeListener = (target, type, listener) => target.#remove(type, listener, false)
    dispatch = (target, event) => target.#dispatch(event)
  }

  addEventListener(type: unknown, listener: Listener | null, options?: ListenerOptions | boolean | null): void {
    const capture = captureOf(options)
    const { once, passive, signal } = typeof options === 'object' && options !== null ? options : NO_OPTIONS
    if (listener === null || listener === undefined) return
    if (typeof listener !== 'function' && typeof listener !== 'object') {
      throw new SafeTypeError('A listener must be a function or an object with handleEvent.')
    }
    if (signal !== undefined && !isAbortSignal(signal)) throw new SafeTypeError('signal must be an AbortSignal.')
    const name = toText(type)
    if (signal !== undefined && isAborted(signal)) return
    const isNew = this.#add(name, listener, capture, !!once, !!passive)
    if (isNew && signal !== undefined) followSignal(signal, () => this.#remove(name, listener, capture))
  }

  removeEventListener(type: unknown, listener: Listener | null, options?: ListenerOptions | boolean | null): void {
    if (listener !== null) this.#remove(toText(type), listener, captureOf(options))
  }

  /**
   * Calls the listeners in order. What one throws is logged and stops none of the others.
   * @returns false if a listener prevented the default
   */
  dispatchEvent(event: Event): boolean {
    if (!isEvent(event)) throw new SafeTypeError('dispatchEvent needs an Event.')
    return this.#dispatch(event)
  }

  get [Symbol.toStringTag](): string {
    return 'EventTarget'
  }

  #add(type: string, listener: Listener, capture: boolean, once: boolean, passive: boolean): boolean {
    const list = (this.#registrations ??= new SafeList())
    if (find(list, type, listener, capture) !== -1) return false
    list[list.length] = { type, listener, capture, once, passive, removed: false }
    return true
  }

  #remove(type: string, listener: Listener, capture: boolean): void {
    const list = this.#registrations
    if (list === undefined) return
    const index = find(list, type, listener, capture)
    if (index === -1) return
    list[index]!.removed = true
    arraySplice(list, index, 1)
  }

  #dispatch(event: Event): boolean {
    const state = dispatchOf(event)
    if (state.dispatching) throw new DOMException('The event is being dispatched already.', 'InvalidStateError')
    state.target = this
    state.currentTarget = this
    state.dispatching = true
    const list = copyOf(this.#registrations)
    const type = typeOf(event)
    for (let index = 0; index < list.length && !state.stoppedAtOnce; index++) {
      const registration = list[index]!
      if (registration.removed || registration.type !== type) continue
      if (registration.once) this.#remove(type, registration.listener, registration.capture)
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
}

/** Listeners that are added or removed meanwhile change nothing for the dispatch that is under way. */
function copyOf(list: List<Registration> | undefined): List<Registration> {
  const copy = new SafeList<Registration>()
  if (list === undefined) return copy
  for (let index = 0; index < list.length; index++) copy[index] = list[index]!
  return copy
}

function call(listener: Listener, target: EventTarget, event: Event): void {
  try {
    if (typeof listener === 'function') apply(listener, target, [event])
    else listener.handleEvent(event)
  } catch (error) {
    reportUncaught(error, `error in a listener of "${typeOf(event)}"`)
  }
}

function find(list: List<Registration>, type: string, listener: Listener, capture: boolean): number {
  for (let index = 0; index < list.length; index++) {
    const registration = list[index]!
    if (registration.type === type && registration.listener === listener && registration.capture === capture) return index
  }
  return -1
}

function captureOf(options: ListenerOptions | boolean | null | undefined): boolean {
  return typeof options === 'object' ? !!options?.capture : !!options
}
