/**
 * `node:async_hooks` in a function. The stores of an AsyncLocalStorage stand in one frame, which V8 hands on to the
 * continuations of promises; timers and ticks take it along. A frame is never changed: who runs with another store has another
 * frame.
 */
import { support } from './support.ts'

type AnyFunction = (this: unknown, ...args: never[]) => unknown
type Frame = ReadonlyMap<object, unknown>

const current = (): Frame | undefined => support.carried() as Frame | undefined

function within<R>(frame: Frame | undefined, run: () => R): R {
  const before = current()
  support.carry(frame)
  try {
    return run()
  } finally {
    support.carry(before)
  }
}

function checkFunction(value: unknown, name: string): void {
  if (typeof value === 'function') return
  const error = new TypeError(`The "${name}" argument must be of type function.`)
  throw Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' })
}

class AsyncLocalStorage {
  readonly #defaultValue: unknown
  readonly #name: string

  static bind<F extends AnyFunction>(callback: F): F {
    return AsyncResource.bind(callback)
  }

  static snapshot(): (callback: AnyFunction, ...args: never[]) => unknown {
    const frame = current()
    return function (this: unknown, callback, ...args) {
      return within(frame, () => callback.apply(this, args))
    }
  }

  constructor(options: { readonly defaultValue?: unknown; readonly name?: string } = {}) {
    support.carryOverTimers()
    this.#defaultValue = options.defaultValue
    this.#name = options.name ?? ''
  }

  get name(): string {
    return this.#name
  }

  run(store: unknown, callback: AnyFunction, ...args: never[]): unknown {
    checkFunction(callback, 'callback')
    return within(this.#with(store), () => callback(...args))
  }

  exit(callback: AnyFunction, ...args: never[]): unknown {
    return this.run(undefined, callback, ...args)
  }

  enterWith(store: unknown): void {
    support.carry(this.#with(store))
  }

  disable(): void {
    const frame = current()
    if (frame === undefined || !frame.has(this)) return
    const rest = new Map(frame)
    rest.delete(this)
    support.carry(rest)
  }

  getStore(): unknown {
    const frame = current()
    return frame === undefined || !frame.has(this) ? this.#defaultValue : frame.get(this)
  }

  withScope(store: unknown): { [Symbol.dispose](): void; dispose(): void } {
    const before = current()
    this.enterWith(store)
    const dispose = (): void => support.carry(before)
    return { dispose, [Symbol.dispose]: dispose }
  }

  #with(store: unknown): Frame {
    return new Map([...(current() ?? []), [this, store]])
  }
}

let lastId = 1

/** What was carried when it was made comes back for whatever runs in its scope. */
class AsyncResource {
  readonly #frame = current()
  readonly #id = ++lastId

  static bind<F extends AnyFunction>(callback: F, type?: string, self?: unknown): F {
    checkFunction(callback, 'fn')
    return new AsyncResource(type ?? (callback.name || 'bound-anonymous-fn')).bind(callback, self)
  }

  constructor(type: string) {
    if (typeof type !== 'string') {
      throw Object.assign(new TypeError('The "type" argument must be of type string.'), { code: 'ERR_INVALID_ARG_TYPE' })
    }
  }

  runInAsyncScope(callback: AnyFunction, self?: unknown, ...args: never[]): unknown {
    return within(this.#frame, () => callback.apply(self, args))
  }

  bind<F extends AnyFunction>(callback: F, self?: unknown): F {
    checkFunction(callback, 'fn')
    const resource = this
    const bound = function (this: unknown, ...args: never[]): unknown {
      return resource.runInAsyncScope(callback, self === undefined ? this : self, ...args)
    }
    Object.defineProperty(bound, 'length', { value: callback.length, configurable: true })
    return bound as F
  }

  emitDestroy(): this {
    return this
  }

  asyncId(): number {
    return this.#id
  }

  triggerAsyncId(): number {
    return 1
  }
}

/** Nothing is told of resources: V8's hooks for that would cost every promise of the isolate. */
function createHook(): { enable(): object; disable(): object } {
  const hook = { enable: () => hook, disable: () => hook }
  return hook
}

const executionAsyncId = (): number => 1
const triggerAsyncId = (): number => 0
const executionAsyncResource = (): object => ({})
const asyncWrapProviders = Object.freeze({ __proto__: null, NONE: 0 })

export {
  AsyncLocalStorage,
  AsyncResource,
  asyncWrapProviders,
  createHook,
  executionAsyncId,
  executionAsyncResource,
  triggerAsyncId,
}
export default {
  AsyncLocalStorage,
  AsyncResource,
  asyncWrapProviders,
  createHook,
  executionAsyncId,
  executionAsyncResource,
  triggerAsyncId,
}
