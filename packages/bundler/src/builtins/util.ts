/** `node:util` in a function: what packages use of it. Its `inspect` gives the text of Node's for plain data, in fewer layouts. */
import { format, inspect } from './util-inspect.ts'
import types from './util-types.ts'

type AnyFunction = (this: unknown, ...args: unknown[]) => unknown
type Constructor = abstract new (...args: never[]) => unknown
type Callback = (error: unknown, value?: unknown) => void

const PROMISIFIED = Symbol.for('nodejs.util.promisify.custom')

function inherits(constructor: Constructor & { super_?: unknown }, parent: Constructor): void {
  Object.defineProperty(constructor, 'super_', { value: parent, writable: true, configurable: true })
  Object.setPrototypeOf(constructor.prototype, parent.prototype)
}

function promisify(original: AnyFunction & { [PROMISIFIED]?: AnyFunction }): AnyFunction {
  const own = original[PROMISIFIED]
  if (own !== undefined) return own
  return Object.setPrototypeOf(function (this: unknown, ...args: unknown[]) {
    return new Promise((resolve, reject) => {
      const done: Callback = (error, value) => (error ? reject(error) : resolve(value))
      original.call(this, ...args, done)
    })
  }, Object.getPrototypeOf(original)) as AnyFunction
}
promisify.custom = PROMISIFIED

function callbackify(original: (...args: unknown[]) => PromiseLike<unknown>): AnyFunction {
  return function (this: unknown, ...args: unknown[]) {
    const done = args.pop() as Callback
    const report = (error: unknown, value?: unknown): void => queueMicrotask(() => done(error, value))
    original.apply(this, args).then(
      (value) => report(null, value),
      (error: unknown) => report(error ?? new Error('Promise was rejected with a falsy value')),
    )
  }
}

function deprecate<F>(original: F): F {
  return original
}

function debuglog(): { (): void; enabled: boolean } {
  return Object.assign(() => {}, { enabled: false })
}

function stripVTControlCharacters(text: string): string {
  return text.replace(
    // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
    /[\u001b\u009b](?:\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[[\]()#;?]*(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~])/g,
    '',
  )
}

const { TextDecoder, TextEncoder } = globalThis
const { isArray } = Array

export {
  TextDecoder,
  TextEncoder,
  callbackify,
  debuglog,
  deprecate,
  format,
  inherits,
  inspect,
  isArray,
  promisify,
  stripVTControlCharacters,
  types,
}
export default {
  TextDecoder,
  TextEncoder,
  callbackify,
  debuglog,
  deprecate,
  format,
  inherits,
  inspect,
  isArray,
  promisify,
  stripVTControlCharacters,
  types,
}
