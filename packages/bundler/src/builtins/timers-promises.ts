/** `node:timers/promises` in a function. */
export interface Options {
  readonly signal?: AbortSignal
  readonly ref?: boolean
}

const { clearImmediate, clearInterval, clearTimeout } = globalThis
const start = globalThis.setTimeout
const startImmediate = globalThis.setImmediate
const startInterval = globalThis.setInterval

function abortError(signal: AbortSignal): Error {
  const error = new Error('The operation was aborted', { cause: signal.reason })
  return Object.assign(error, { name: 'AbortError', code: 'ABORT_ERR' })
}

function invalid(name: string, type: string, value: unknown): TypeError & { code: string } {
  const kind = name.includes('.') ? 'property' : 'argument'
  const error = new TypeError(`The "${name}" ${kind} must be ${type}. Received ${received(value)}`)
  return Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' })
}

function received(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'object') return `an instance of ${value.constructor.name}`
  return typeof value === 'function' ? `function ${value.name}` : `type ${typeof value} (${String(value)})`
}

function problemOf(options: unknown): Error | undefined {
  if (options === null || typeof options !== 'object') return invalid('options', 'of type object', options)
  const { signal, ref } = options as { signal?: unknown; ref?: unknown }
  if (signal !== undefined && (typeof signal !== 'object' || signal === null || !('aborted' in signal))) {
    return invalid('options.signal', 'an instance of AbortSignal', signal)
  }
  return ref !== undefined && typeof ref !== 'boolean' ? invalid('options.ref', 'of type boolean', ref) : undefined
}

function wait<T>(value: T, options: Options, begin: (done: () => void) => () => void): Promise<T> {
  const problem = problemOf(options)
  if (problem !== undefined) return Promise.reject(problem)
  const { signal } = options
  if (signal?.aborted === true) return Promise.reject(abortError(signal))
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      stop()
      reject(abortError(signal!))
    }
    const stop = begin(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve(value)
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

function setTimeout<T>(delay?: number, value?: T, options: Options = {}): Promise<T | undefined> {
  return wait(value, options, (done) => {
    const timer = start(done, delay)
    return () => clearTimeout(timer)
  })
}

function setImmediate<T>(value?: T, options: Options = {}): Promise<T | undefined> {
  return wait(value, options, (done) => {
    const timer = startImmediate(done)
    return () => clearImmediate(timer)
  })
}

async function* setInterval<T>(delay?: number, value?: T, options: Options = {}): AsyncGenerator<T | undefined> {
  const problem = problemOf(options)
  if (problem !== undefined) throw problem
  const { signal } = options
  const isAborted = (): boolean => signal?.aborted === true
  if (isAborted()) throw abortError(signal!)
  let due = 0
  let wake: (() => void) | undefined
  const notify = (): void => wake?.()
  const timer = startInterval(() => {
    due++
    notify()
  }, delay)
  signal?.addEventListener('abort', notify, { once: true })
  try {
    for (;;) {
      if (due === 0 && !isAborted()) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      if (isAborted()) throw abortError(signal!)
      for (; due > 0; due--) yield value
    }
  } finally {
    clearInterval(timer)
    signal?.removeEventListener('abort', notify)
  }
}

const scheduler = {
  wait: (delay?: number, options?: Options): Promise<undefined> => setTimeout(delay, undefined, options),
  yield: (): Promise<undefined> => setImmediate(),
}

/** `util.promisify(setTimeout)` gives these, as in Node.js. */
const PROMISIFIED = Symbol.for('nodejs.util.promisify.custom')
for (const [callback, promised] of [
  [start, setTimeout],
  [startImmediate, setImmediate],
] as const) {
  if (callback !== undefined && !Object.hasOwn(callback, PROMISIFIED)) {
    Object.defineProperty(callback, PROMISIFIED, { value: promised, configurable: true })
  }
}

export { scheduler, setImmediate, setInterval, setTimeout }
export default { scheduler, setImmediate, setInterval, setTimeout }
