import { now } from './host.ts'
import { apply, arraySplice, type List, SafeList, SafeTypeError } from '../language/primordials.ts'
import { toText } from '../language/values.ts'
import { type AbortSignal, followSignal, isAborted, isAbortSignal } from './abort-signal.ts'
import { DOMException } from './dom-exception.ts'
import { reportUncaught } from './errors.ts'

export interface EventInit {
  bubbles?: boolean
  cancelable?: boolean
  composed?: boolean
}

/** What the dispatch of an event changes in it. */
export interface Dispatch {
  target: EventTarget | null
  currentTarget: EventTarget | null
  dispatching: boolean
  stopped: boolean
  stoppedAtOnce: boolean
  passive: boolean
  canceled: boolean
}

/** The inner state of an event; for the dispatch only. */
export let dispatchOf: (event: Event) => Dispatch
export let isEvent: (value: unknown) => value is Event
/** Marks an event as one of the runtime's own. */
export let trusted: (event: Event) => Event
/** The type, which user code may have hidden behind a property of its own. */
export let typeOf: (event: Event) => string

export class Event {
  static readonly NONE = 0
  static readonly CAPTURING_PHASE = 1
  static readonly AT_TARGET = 2
  static readonly BUBBLING_PHASE = 3

  #type: string
  #bubbles: boolean
  #cancelable: boolean
  readonly #composed: boolean
  readonly #timeStamp = now()
  #isTrusted = false
  readonly #dispatch: Dispatch = {
    target: null,
    currentTarget: null,
    dispatching: false,
    stopped: false,
    stoppedAtOnce: false,
    passive: false,
    canceled: false,
  }

  static {
    dispatchOf = (event) => event.#dispatch
    isEvent = (value): value is Event => typeof value === 'object' && value !== null && #dispatch in value
    typeOf = (event) => event.#type
    trusted = (event) => {
      event.#isTrusted = true
      return event
    }
  }

  constructor(type: unknown, init?: EventInit | null) {
    if (arguments.length === 0) throw new SafeTypeError('An event needs a type.')
    this.#type = toText(type)
    this.#bubbles = !!init?.bubbles
    this.#cancelable = !!init?.cancelable
    this.#composed = !!init?.composed
  }

  get type(): string {
    return this.#type
  }

  get target(): EventTarget | null {
    return this.#dispatch.target
  }

  get srcElement(): EventTarget | null {
    return this.#dispatch.target
  }

  get currentTarget(): EventTarget | null {
    return this.#dispatch.currentTarget
  }

  get eventPhase(): number {
    return this.#dispatch.dispatching ? 2 : 0
  }

  get bubbles(): boolean {
    return this.#bubbles
  }

  get cancelable(): boolean {
    return this.#cancelable
  }

  get composed(): boolean {
    return this.#composed
  }

  get defaultPrevented(): boolean {
    return this.#dispatch.canceled
  }

  get returnValue(): boolean {
    return !this.#dispatch.canceled
  }

  set returnValue(value: boolean) {
    if (!value) this.#cancel()
  }

  get cancelBubble(): boolean {
    return this.#dispatch.stopped
  }

  set cancelBubble(value: boolean) {
    if (value) this.#dispatch.stopped = true
  }

  get timeStamp(): number {
    return this.#timeStamp
  }

  get isTrusted(): boolean {
    return this.#isTrusted
  }

  composedPath(): EventTarget[] {
    const { dispatching, currentTarget } = this.#dispatch
    return dispatching && currentTarget !== null ? [currentTarget] : []
  }

  initEvent(type: unknown, bubbles?: unknown, cancelable?: unknown): void {
    if (arguments.length === 0) throw new SafeTypeError('An event needs a type.')
    const name = toText(type)
    if (this.#dispatch.dispatching) return
    this.#dispatch.stopped = this.#dispatch.stoppedAtOnce = this.#dispatch.canceled = false
    this.#dispatch.target = null
    this.#type = name
    this.#bubbles = !!bubbles
    this.#cancelable = !!cancelable
  }

  preventDefault(): void {
    this.#cancel()
  }

  stopPropagation(): void {
    this.#dispatch.stopped = true
  }

  stopImmediatePropagation(): void {
    this.#dispatch.stopped = true
    this.#dispatch.stoppedAtOnce = true
  }

  #cancel(): void {
    if (this.#cancelable && !this.#dispatch.passive) this.#dispatch.canceled = true
  }

  get [Symbol.toStringTag](): string {
    return 'Event'
  }
}

export class CustomEvent extends Event {
  readonly #detail: unknown

  constructor(type: unknown, init?: (EventInit & { detail?: unknown }) | null) {
    super(type, init)
    this.#detail = init?.detail ?? null
  }

  get detail(): unknown {
    return this.#detail
  }

  override get [Symbol.toStringTag](): string {
    return 'CustomEvent'
  }
}

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

const global = globalThis as unknown as EventTarget
let world: EventTarget | undefined

/** Makes a target stand for the global object: events that are dispatched to it are the global object's. */
export function setWorld(target: EventTarget): void {
  world = target
}

export let hasListener: (target: EventTarget, type: string) => boolean

/** What the methods of the same names do, for the runtime: user code may have replaced those. */
export let addListener: (target: EventTarget, type: string, listener: Listener) => void
export let removeListener: (target: EventTarget, type: string, listener: Listener) => void
export let dispatch: (target: EventTarget, event: Event) => boolean

export class EventTarget {
  /** Absent until the first listener: most signals never have one. */
  #registrations: List<Registration> | undefined

  static {
    hasListener = (target, type) => {
      const list = target.#registrations
      if (list === undefined) return false
      for (let index = 0; index < list.length; index++) if (list[index]!.type === type) return true
      return false
    }
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
    const self = this === world ? global : this
    state.target = self
    state.currentTarget = self
    state.dispatching = true
    const list = copyOf(this.#registrations)
    const type = typeOf(event)
    for (let index = 0; index < list.length && !state.stoppedAtOnce; index++) {
      const registration = list[index]!
      if (registration.removed || registration.type !== type) continue
      if (registration.once) this.#remove(type, registration.listener, registration.capture)
      state.passive = registration.passive
      call(registration.listener, self, event)
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
