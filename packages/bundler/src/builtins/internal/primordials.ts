/**
 * The language's functions under the names that Node.js' own modules use. Those are taken against later changes by user code;
 * here that does not matter, so each is made when a module asks for it.
 */
type Method = (this: unknown, ...args: unknown[]) => unknown

const { bind, call, apply } = Function.prototype
const uncurryThis = bind.bind(call) as unknown as (method: unknown) => Method
const applyBind = bind.bind(apply) as unknown as (method: unknown, self?: unknown) => Method
const world = globalThis as unknown as Record<string, Record<PropertyKey, unknown> | undefined>
const TypedArray = Object.getPrototypeOf(Uint8Array) as Record<PropertyKey, unknown>
const prototypeOf = (value: object): object => Object.getPrototypeOf(value) as object
const lower = (name: string): string => name.charAt(0).toLowerCase() + name.slice(1)

class SafeMap<K, V> extends Map<K, V> {}
class SafeSet<T> extends Set<T> {}
class SafeWeakMap<K extends WeakKey, V> extends WeakMap<K, V> {}
class SafeWeakSet<T extends WeakKey> extends WeakSet<T> {}
class SafePromise<T> extends Promise<T> {
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }
}

/** In a function nothing sees what is collected: it holds what it refers to. */
class HoldingRef {
  readonly #target: unknown
  constructor(target: unknown) {
    this.#target = target
  }
  deref(): unknown {
    return this.#target
  }
}

class NoRegistry {
  register(): void {}
  unregister(): void {}
}

function iteratorOf(values: Iterable<unknown>): Iterator<unknown> {
  return values[Symbol.iterator]()
}

type Mapper = (value: unknown, index: number) => unknown
const mapped = (promises: Iterable<unknown>, mapper?: Mapper): unknown[] =>
  mapper === undefined ? Array.from(promises) : Array.from(promises, mapper)

const SPECIAL: Record<string, unknown> = {
  globalThis,
  Proxy,
  decodeURI,
  decodeURIComponent,
  encodeURI,
  encodeURIComponent,
  escape: world['escape'],
  unescape: world['unescape'],
  eval: world['eval'],
  queueMicrotask: world['queueMicrotask'],
  uncurryThis,
  applyBind,
  SafeMap,
  SafeSet,
  SafeWeakMap,
  SafeWeakSet,
  SafePromise,
  SafeWeakRef: HoldingRef,
  WeakRef: HoldingRef,
  SafeFinalizationRegistry: NoRegistry,
  FinalizationRegistry: NoRegistry,
  SafeArrayIterator: function SafeArrayIterator(values: Iterable<unknown>) {
    return iteratorOf(values)
  },
  SafeStringIterator: function SafeStringIterator(text: Iterable<unknown>) {
    return iteratorOf(text)
  },
  SafePromiseAll: (promises: Iterable<unknown>, mapper?: Mapper) => Promise.all(mapped(promises, mapper)),
  SafePromiseAllReturnArrayLike: (promises: Iterable<unknown>, mapper?: Mapper) => Promise.all(mapped(promises, mapper)),
  SafePromiseAllReturnVoid: async (promises: Iterable<unknown>, mapper?: Mapper) => {
    await Promise.all(mapped(promises, mapper))
  },
  SafePromiseAllSettled: (promises: Iterable<unknown>, mapper?: Mapper) => Promise.allSettled(mapped(promises, mapper)),
  SafePromiseAllSettledReturnVoid: async (promises: Iterable<unknown>, mapper?: Mapper) => {
    await Promise.allSettled(mapped(promises, mapper))
  },
  SafePromiseAny: (promises: Iterable<unknown>, mapper?: Mapper) => Promise.any(mapped(promises, mapper)),
  SafePromiseRace: (promises: Iterable<unknown>, mapper?: Mapper) => Promise.race(mapped(promises, mapper)),
  SafePromisePrototypeFinally: (promise: Promise<unknown>, onFinally: () => void) => promise.finally(onFinally),
  hardenRegExp: <T>(pattern: T): T => pattern,
  SafeStringPrototypeSearch: (text: string, pattern: RegExp) => text.search(pattern),
  AsyncIteratorPrototype: prototypeOf(prototypeOf(async function* () {}.prototype as object)),
  IteratorPrototype: prototypeOf(prototypeOf([][Symbol.iterator]())),
  ArrayIteratorPrototype: prototypeOf([][Symbol.iterator]()),
  StringIteratorPrototype: prototypeOf(''[Symbol.iterator]()),
  ArrayIteratorPrototypeNext: uncurryThis([][Symbol.iterator]().next),
  StringIteratorPrototypeNext: uncurryThis(''[Symbol.iterator]().next),
}

/** A member of a constructor, namespace or prototype by the name that comes after it; `isMethod`: its `this` comes first. */
function member(holder: Record<PropertyKey, unknown>, name: string, isMethod: boolean): unknown {
  const read = (key: PropertyKey): PropertyDescriptor | undefined => Object.getOwnPropertyDescriptor(holder, key)
  const given = (value: unknown): unknown => {
    if (typeof value !== 'function') return value
    if (isMethod && name !== 'Constructor') return uncurryThis(value)
    return holder === (Promise as unknown) ? bind.call(value, Promise) : value
  }
  const symbol = name.startsWith('Symbol') ? (Symbol as unknown as Record<string, unknown>)[lower(name.slice(6))] : undefined
  for (const key of typeof symbol === 'symbol' ? [symbol] : [lower(name), name]) {
    const found = read(key)
    if (found === undefined) continue
    if ('value' in found) return given(found.value)
    if (!isMethod) return holder[key]
  }
  if (/^[GS]et./.test(name)) {
    const rest = name.slice(3)
    const wanted = rest.startsWith('Symbol')
      ? ((Symbol as unknown as Record<string, symbol>)[lower(rest.slice(6))] ?? '')
      : lower(rest)
    const found = read(wanted)
    const accessor = name.startsWith('G') ? found?.get : found?.set
    if (accessor !== undefined) return uncurryThis(accessor)
  }
  if (name.endsWith('Apply')) {
    const found = read(lower(name.slice(0, -'Apply'.length)))
    if (typeof found?.value === 'function') return isMethod ? applyBind(found.value) : applyBind(found.value, holder)
  }
  return undefined
}

/** Only there one name may end in another. */
function isCapital(code: number): boolean {
  return code >= 65 && code <= 90
}

/** `ArrayPrototypePush` of `Array`, `MathMax` of `Math`: the longest name of a global that fits. */
function make(name: string): unknown {
  if (Object.hasOwn(SPECIAL, name)) return SPECIAL[name]
  for (let length = name.length; length > 0; length--) {
    if (length < name.length && !isCapital(name.charCodeAt(length))) continue
    const prefix = name.slice(0, length)
    const holder = prefix === 'TypedArray' ? TypedArray : world[prefix]
    if ((typeof holder !== 'object' && typeof holder !== 'function') || holder === null) continue
    const rest = name.slice(length)
    if (rest === '') return holder
    const inner = /^Prototype(.*)$/.exec(rest)?.[1]
    const { prototype } = holder as { readonly prototype?: Record<PropertyKey, unknown> }
    if (inner === '') return prototype
    const found = inner === undefined || prototype === undefined ? member(holder, rest, false) : member(prototype, inner, true)
    if (found !== undefined) return found
  }
  return undefined
}

export default new Proxy(Object.create(null) as Record<string, unknown>, {
  get: (made, name) => (typeof name === 'symbol' ? undefined : name in made ? made[name] : (made[name] = make(name))),
})
