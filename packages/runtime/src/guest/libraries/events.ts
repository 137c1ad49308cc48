/** The events of the global object: what nothing caught, and what listens to it. */
import { toText } from '../language/values.ts'
import { setHears } from '../web-api/errors.ts'
import { Event, type EventInit, EventTarget, hasListener, setWorld } from '../web-api/events.ts'
import { asInterfaces } from './interfaces.ts'

interface ErrorEventInit extends EventInit {
  message?: unknown
  filename?: unknown
  lineno?: unknown
  colno?: unknown
  error?: unknown
}

export class ErrorEvent extends Event {
  readonly #message: string
  readonly #filename: string
  readonly #lineno: number
  readonly #colno: number
  readonly #error: unknown

  constructor(type: unknown, init?: ErrorEventInit | null) {
    if (arguments.length === 0) throw new TypeError('An event needs a type.')
    super(type, init)
    this.#message = init?.message === undefined ? '' : toText(init.message)
    this.#filename = init?.filename === undefined ? '' : toText(init.filename)
    this.#lineno = Number(init?.lineno ?? 0) >>> 0
    this.#colno = Number(init?.colno ?? 0) >>> 0
    this.#error = init?.error
  }

  get message(): string {
    return this.#message
  }

  get filename(): string {
    return this.#filename
  }

  get lineno(): number {
    return this.#lineno
  }

  get colno(): number {
    return this.#colno
  }

  get error(): unknown {
    return this.#error
  }
}

export class PromiseRejectionEvent extends Event {
  readonly #promise: unknown
  readonly #reason: unknown

  constructor(type: unknown, init: EventInit & { promise: unknown; reason?: unknown }) {
    if (arguments.length < 2) throw new TypeError('A PromiseRejectionEvent needs a type and a promise.')
    if (typeof init !== 'object' || init === null || !('promise' in init))
      throw new TypeError('A PromiseRejectionEvent needs a promise.')
    super(type, init)
    this.#promise = init.promise
    this.#reason = init.reason
  }

  get promise(): unknown {
    return this.#promise
  }

  get reason(): unknown {
    return this.#reason
  }
}

asInterfaces({ ErrorEvent, PromiseRejectionEvent })

/** Holds the listeners of the global object, which is the target of what is dispatched here. */
const world = new EventTarget()
setWorld(world)
setHears((type) => hasListener(world, type))

type Handler = (...args: unknown[]) => unknown
const handlers = new Map<string, { given: Handler; listener: (event: Event) => void }>()

function setHandler(type: string, given: unknown): void {
  const before = handlers.get(type)
  if (typeof given !== 'function' && (typeof given !== 'object' || given === null)) {
    if (before !== undefined) world.removeEventListener(type, before.listener)
    handlers.delete(type)
    return
  }
  if (before !== undefined) {
    before.given = given as Handler
    return
  }
  const handler = { given: given as Handler, listener: (event: Event): void => call(handler.given, event) }
  handlers.set(type, handler)
  world.addEventListener(type, handler.listener)
}

function call(handler: Handler, event: Event): void {
  if (typeof handler !== 'function') return
  if (event instanceof ErrorEvent && event.type === 'error') {
    const { message, filename, lineno, colno, error } = event
    if (Reflect.apply(handler, globalThis, [message, filename, lineno, colno, error]) === true) event.preventDefault()
  } else if (Reflect.apply(handler, globalThis, [event]) === false) event.preventDefault()
}

const TYPES = ['error', 'unhandledrejection', 'rejectionhandled'] as const

/** What the global object has of it: listeners, and an attribute for each type. */
export function installWorld(target: object): void {
  for (const type of TYPES) {
    Object.defineProperty(target, `on${type}`, {
      get: () => handlers.get(type)?.given ?? null,
      set: (given: unknown) => {
        setHandler(type, given)
      },
      enumerable: true,
      configurable: true,
    })
  }
}

export function addEventListener(...args: Parameters<EventTarget['addEventListener']>): void {
  world.addEventListener(...args)
}

export function removeEventListener(...args: Parameters<EventTarget['removeEventListener']>): void {
  world.removeEventListener(...args)
}

export function dispatchEvent(event: Event): boolean {
  return world.dispatchEvent(event)
}

let isReporting = false

/** Tells listeners of what was thrown. @returns whether one of them prevented that it is logged */
export function reportThrown(error: unknown): boolean {
  // What a listener throws is only logged.
  if (isReporting) return false
  isReporting = true
  try {
    const isError = Error.isError(error)
    const message = isError ? `Uncaught ${toText(error)}` : `Uncaught ${typeof error === 'object' ? 'exception' : toText(error)}`
    return !dispatchEvent(new ErrorEvent('error', { message, error, cancelable: true }))
  } catch {
    return false
  } finally {
    isReporting = false
  }
}

/** The same for a promise that was rejected and that nobody awaits. */
export function reportRejection(promise: unknown, reason: unknown): boolean {
  try {
    return !dispatchEvent(new PromiseRejectionEvent('unhandledrejection', { promise, reason, cancelable: true }))
  } catch {
    return false
  }
}

/** Somebody awaits it after all. */
export function reportHandled(promise: unknown, reason: unknown): void {
  dispatchEvent(new PromiseRejectionEvent('rejectionhandled', { promise, reason }))
}
