import { SafeTypeError } from '../primordials.ts'
import { now } from '../time/clock.ts'
import type { EventTarget } from './event-target.ts'
import { toText } from '../to-text.ts'

interface EventInit {
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
/** The type, which user code may have hidden behind a property of its own. */
export let typeOf: (event: Event) => string

export class Event {
  static readonly NONE = 0
  static readonly CAPTURING_PHASE = 1
  static readonly AT_TARGET = 2
  static readonly BUBBLING_PHASE = 3

  readonly #type: string
  readonly #bubbles: boolean
  readonly #cancelable: boolean
  readonly #composed: boolean
  readonly #timeStamp = now()
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
    return false
  }

  composedPath(): EventTarget[] {
    const { dispatching, currentTarget } = this.#dispatch
    return dispatching && currentTarget !== null ? [currentTarget] : []
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
