import { environment } from './environment.ts'

type Method = (this: object, ...args: unknown[]) => unknown
interface Class {
  readonly prototype: object
}

/** What streams are used by: the first use of one of them makes a stream of the object. */
// biome-ignore format: names
const STREAM_METHODS = [
  'addListener', 'cork', 'destroy', 'emit', 'end', 'eventNames', 'listenerCount', 'listeners', 'off', 'on', 'once', 'pause', 'pipe',
  'prependListener', 'prependOnceListener', 'push', 'read', 'removeAllListeners', 'removeListener', 'resume', 'setDefaultEncoding',
  'setEncoding', 'setMaxListeners', 'uncork', 'unpipe', 'unshift', 'write', Symbol.asyncIterator,
] as const

/** What says how a stream is, and whether something is one: to look at one of them is a use too. */
// biome-ignore format: names
const STREAM_STATES = [
  '_readableState', '_writableState', 'closed', 'destroyed', 'errored', 'readable', 'readableAborted', 'readableDidRead',
  'readableEncoding', 'readableEnded', 'readableFlowing', 'readableHighWaterMark', 'readableLength', 'readableObjectMode', 'writable',
  'writableAborted', 'writableCorked', 'writableEnded', 'writableFinished', 'writableHighWaterMark', 'writableLength',
  'writableNeedDrain', 'writableObjectMode',
] as const

/**
 * Makes objects of a class and of those that extend it streams, but only once one is used as a stream: most never are, and the
 * module of streams is large.
 * @param Class extends no other; none of its methods has the name of one of a stream
 * @param options of the stream, with the methods that do its work
 * @returns makes a stream of an object at once
 */
export function streamAtUse(
  Class: Class,
  kind: 'Transform' | 'Writable',
  options: (self: never) => object,
): (self: object) => void {
  const begun = new WeakSet<object>()
  const begin = (self: object): void => {
    // A prototype is none, whoever looks at it.
    if (begun.has(self) || Object.hasOwn(self, 'constructor')) return
    begun.add(self)
    const Stream = environment.stream()[kind]
    // The methods of streams look for each other on the object.
    if (!Object.prototype.isPrototypeOf.call(Stream.prototype, Class.prototype)) {
      for (const name of [...STREAM_METHODS, ...STREAM_STATES]) delete (Class.prototype as Record<PropertyKey, unknown>)[name]
      Object.setPrototypeOf(Class.prototype, methodsOf(Stream.prototype, begin))
    }
    Reflect.apply(Stream as unknown as Method, self, [options(self as never)])
  }
  for (const name of STREAM_METHODS) {
    Object.defineProperty(Class.prototype, name, {
      value: function (this: object, ...args: unknown[]): unknown {
        begin(this)
        return Reflect.apply((this as Record<PropertyKey, Method>)[name]!, this, args)
      },
      writable: true,
      configurable: true,
    })
  }
  addStates(Class.prototype, Object.prototype, begin)
  return begin
}

/** Accessors that first make a stream of an object that is none yet. It has the property itself then, or its class has. */
function addStates(target: object, prototype: object, begin: (self: object) => void): void {
  for (const name of STREAM_STATES) {
    Object.defineProperty(target, name, {
      get(this: object): unknown {
        begin(this)
        const isChanged = Object.hasOwn(this, name) || !Object.hasOwn(target, name)
        return isChanged ? (this as Record<string, unknown>)[name] : Reflect.get(prototype, name, this)
      },
      set(this: object, value: unknown) {
        begin(this)
        Reflect.set(prototype, name, value, this)
      },
      configurable: true,
    })
  }
}

/** The prototype of streams, behind methods that first make a stream of an object that is none yet. */
function methodsOf(prototype: object, begin: (self: object) => void): object {
  const methods = Object.create(prototype) as object
  addStates(methods, prototype, begin)
  for (const name of STREAM_METHODS) {
    const method = (prototype as Record<PropertyKey, Method | undefined>)[name]
    if (method === undefined) continue
    Object.defineProperty(methods, name, {
      value: function (this: object, ...args: unknown[]): unknown {
        begin(this)
        return Reflect.apply(method, this, args)
      },
      writable: true,
      configurable: true,
    })
  }
  return methods
}
