/** `node:process`: the object that is the global already, with all that Node.js' has and a function can have. */
import facts from 'carpool-node:facts'
import { support } from './support.ts'

type Listener = (...args: unknown[]) => unknown

/**
 * As much of an EventEmitter as a process and its streams need, so that a function with `process` has not all of `events` in
 * it.
 */
class Emitter {
  readonly #listeners = new Map<PropertyKey, Listener[]>()

  on(name: PropertyKey, listener: Listener): this {
    return this.#add(name, listener, false)
  }
  addListener(name: PropertyKey, listener: Listener): this {
    return this.#add(name, listener, false)
  }
  prependListener(name: PropertyKey, listener: Listener): this {
    return this.#add(name, listener, true)
  }
  once(name: PropertyKey, listener: Listener): this {
    const once = (...args: unknown[]): unknown => {
      this.off(name, once)
      return listener.apply(this, args)
    }
    return this.#add(name, Object.assign(once, { listener }), false)
  }
  prependOnceListener(name: PropertyKey, listener: Listener): this {
    return this.once(name, listener)
  }
  off(name: PropertyKey, listener: Listener): this {
    const list = this.#listeners.get(name) ?? []
    const index = list.findLastIndex((one) => one === listener || (one as { listener?: Listener }).listener === listener)
    if (index !== -1) this.#listeners.set(name, list.toSpliced(index, 1))
    return this
  }
  removeListener(name: PropertyKey, listener: Listener): this {
    return this.off(name, listener)
  }
  removeAllListeners(name?: PropertyKey): this {
    if (name === undefined) this.#listeners.clear()
    else this.#listeners.delete(name)
    return this
  }
  emit(name: PropertyKey, ...args: unknown[]): boolean {
    const list = this.#listeners.get(name) ?? []
    for (const listener of list) listener.apply(this, args)
    return list.length > 0
  }
  listeners(name: PropertyKey): Listener[] {
    return (this.#listeners.get(name) ?? []).map((one) => (one as { listener?: Listener }).listener ?? one)
  }
  rawListeners(name: PropertyKey): Listener[] {
    return [...(this.#listeners.get(name) ?? [])]
  }
  listenerCount(name: PropertyKey): number {
    return this.#listeners.get(name)?.length ?? 0
  }
  eventNames(): PropertyKey[] {
    return [...this.#listeners.keys()]
  }
  setMaxListeners(): this {
    return this
  }
  getMaxListeners(): number {
    return 10
  }

  #add(name: PropertyKey, listener: Listener, isFirst: boolean): this {
    if (typeof listener !== 'function') throw new TypeError('The "listener" argument must be of type function.')
    const list = this.#listeners.get(name) ?? []
    this.#listeners.set(name, isFirst ? [listener, ...list] : [...list, listener])
    if (name === 'uncaughtException' || name === 'unhandledRejection') hearUncaught()
    return this
  }
}

interface UncaughtEvent {
  readonly error: unknown
  readonly reason: unknown
  readonly promise: Promise<unknown>
  preventDefault(): void
}
declare function addEventListener(type: string, listener: (event: UncaughtEvent) => void): void

let hearsUncaught = false

/**
 * From the first listener on, what nobody caught goes to those who listen; what none of them hears is a line of the log, as
 * ever.
 */
function hearUncaught(): void {
  if (hearsUncaught) return
  hearsUncaught = true
  addEventListener('error', (event) => {
    if (node.emit('uncaughtException', event.error, 'uncaughtException')) event.preventDefault()
  })
  addEventListener('unhandledrejection', (event) => {
    const { reason, promise } = event
    const isHeard =
      node.emit('unhandledRejection', reason, promise) || node.emit('uncaughtException', reason, 'unhandledRejection')
    if (isHeard) event.preventDefault()
  })
}

type Log = (text: string) => void

/** `process.stdout` and `process.stderr`: what is written is a line of the log. */
class LogStream extends Emitter {
  readonly fd: number
  readonly writable = true
  readonly writableLength = 0
  readonly writableHighWaterMark = 16_384
  readonly writableNeedDrain = false
  readonly destroyed = false
  readonly _isStdio = true
  readonly #log: Log
  #rest = ''

  constructor(fd: number, log: Log) {
    super()
    this.fd = fd
    this.#log = log
  }

  write(chunk: unknown, encoding?: unknown, done?: unknown): boolean {
    this.#rest += typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk as Uint8Array)
    const end = this.#rest.lastIndexOf('\n')
    if (end !== -1) {
      this.#log(this.#rest.slice(0, end))
      this.#rest = this.#rest.slice(end + 1)
    }
    const callback = typeof encoding === 'function' ? encoding : done
    if (typeof callback === 'function') nextTick(callback as Listener)
    return true
  }

  /** A log has no half lines: what waits for the end of its line goes out with the entry. */
  flush(): void {
    if (this.#rest === '') return
    this.#log(this.#rest)
    this.#rest = ''
  }

  end(chunk?: unknown, encoding?: unknown, done?: unknown): this {
    if (chunk !== undefined && typeof chunk !== 'function') this.write(chunk, encoding, done)
    return this
  }
  cork(): void {}
  uncork(): void {}
  destroy(): this {
    return this
  }
  getColorDepth(): number {
    return 1
  }
  hasColors(): boolean {
    return false
  }
}

interface Tick {
  readonly callback: Listener
  readonly args: unknown[]
  readonly carried: unknown
}

let ticks: Tick[] = []
let isScheduled = false
declare const reportError: ((error: unknown) => void) | undefined
const { queueMicrotask } = globalThis

/**
 * Runs before the microtasks of the entry's synchronous part, as in Node.js. What a microtask asks for runs behind those that
 * wait already, and not behind all that these will queue.
 */
function nextTick(callback: Listener, ...args: unknown[]): void {
  if (typeof callback !== 'function') {
    const error = new TypeError('The "callback" argument must be of type function.')
    throw Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' })
  }
  ticks.push({ callback, args, carried: support.carried() })
  if (isScheduled) return
  isScheduled = true
  queueMicrotask(runTicks)
}

function runTicks(): void {
  isScheduled = false
  if (ticks.length === 0) return
  const before = support.carried()
  for (let index = 0; index < ticks.length; index++) {
    const { callback, args, carried } = ticks[index]!
    support.carry(carried)
    try {
      callback(...args)
    } catch (error) {
      reportError!(error)
    }
  }
  ticks = []
  support.carry(before)
}

const { log, error: logError, warn } = console
const stdout = new LogStream(1, (text) => log.call(console, text))
const stderr = new LogStream(2, (text) => logError.call(console, text))
support.afterTurn(() => {
  if (ticks.length > 0) runTicks()
  stdout.flush()
  stderr.flush()
})

function refusal(what: string, why: string): () => never {
  return () => {
    const error = new Error(`process.${what} is not available in a function: ${why}.`)
    throw Object.assign(error, { code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' })
  }
}

function hrtime(before?: readonly [number, number]): [number, number] {
  const ms = performance.now()
  let seconds = Math.floor(ms / 1000)
  let nanoseconds = Math.floor((ms % 1000) * 1e6)
  if (before !== undefined) {
    seconds -= before[0]
    nanoseconds -= before[1]
    if (nanoseconds < 0) {
      seconds -= 1
      nanoseconds += 1e9
    }
  }
  return [seconds, nanoseconds]
}
hrtime.bigint = (): bigint => BigInt(Math.floor(performance.now() * 1e6))

interface WarningOptions {
  readonly type?: string
  readonly code?: string
  readonly detail?: string
}

function emitWarning(warning: string | Error, type?: string | WarningOptions, code?: string): void {
  const options: WarningOptions =
    typeof type === 'object' && type !== null
      ? type
      : { ...(type !== undefined && { type }), ...(code !== undefined && { code }) }
  const shown = typeof warning === 'string' ? Object.assign(new Error(warning), { name: options.type ?? 'Warning' }) : warning
  if (options.code !== undefined) Object.assign(shown, { code: options.code })
  if (options.detail !== undefined) Object.assign(shown, { detail: options.detail })
  if (shown.name === 'DeprecationWarning' && node['noDeprecation'] === true) return
  nextTick(() => {
    const given = (shown as { code?: string }).code
    warn.call(console, `(node:${facts.pid}) ${given === undefined ? '' : `[${given}] `}${shown.name}: ${shown.message}`)
    node.emit('warning', shown)
  })
}

/** The heap of an isolate is not measured from within: these are fixed. */
const MEMORY = { rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }
const memoryUsage = Object.assign(() => ({ ...MEMORY }), { rss: () => 0 })

const members = {
  title: 'node',
  version: `v${facts.versions['node']}`,
  versions: facts.versions,
  platform: facts.platform,
  arch: facts.arch,
  release: { name: 'node' },
  argv: [facts.execPath, `${facts.root}/index.js`],
  argv0: 'node',
  execArgv: [] as string[],
  execPath: facts.execPath,
  pid: facts.pid,
  ppid: 0,
  exitCode: undefined as number | undefined,
  config: { target_defaults: {}, variables: {} },
  features: facts.features,
  allowedNodeEnvironmentFlags: new Set<string>(),
  stdout,
  stderr,
  stdin: Object.assign(new Emitter(), { fd: 0, isTTY: undefined, readable: false, resume() {}, pause() {} }),
  nextTick,
  hrtime,
  emitWarning,
  memoryUsage,
  uptime: () => performance.now() / 1000,
  cwd: () => facts.root,
  umask: () => 0o22,
  ref() {},
  unref() {},
  openStdin: () => members.stdin,
  cpuUsage: () => ({ user: 0, system: 0 }),
  threadCpuUsage: () => ({ user: 0, system: 0 }),
  resourceUsage: () => ({ userCPUTime: 0, systemCPUTime: 0, maxRSS: 0 }),
  constrainedMemory: () => 0,
  availableMemory: () => 0,
  getActiveResourcesInfo: () => [] as string[],
  getuid: () => 1000,
  geteuid: () => 1000,
  getgid: () => 1000,
  getegid: () => 1000,
  getgroups: () => [1000],
  /** @param load the module, where its name stands as text: see module-files.ts */
  getBuiltinModule: (_name: unknown, load?: () => unknown) => load?.(),
  setUncaughtExceptionCaptureCallback() {},
  hasUncaughtExceptionCaptureCallback: () => false,
  setSourceMapsEnabled() {},
  addUncaughtExceptionCaptureCallback() {},
  exit: (code?: number) => refusal(`exit(${code ?? ''})`, 'it has no process of its own; return or throw instead')(),
  reallyExit: refusal('reallyExit()', 'it has no process of its own'),
  abort: refusal('abort()', 'it has no process of its own'),
  kill: refusal('kill()', 'it has no processes'),
  chdir: refusal('chdir()', 'it has no file system'),
  dlopen: refusal('dlopen()', 'native addons cannot run in it'),
  binding: refusal('binding()', 'it has none of the insides of Node.js'),
  loadEnvFile: refusal('loadEnvFile()', 'it has no file system; its variables are in process.env'),
}

const existing = (globalThis as { process?: object }).process ?? { env: {} }
const emitter = new Emitter()
for (const name of Object.getOwnPropertyNames(Emitter.prototype)) {
  if (name === 'constructor') continue
  const method = (emitter as unknown as Record<string, Listener>)[name]!
  const bound = (...args: unknown[]): unknown => {
    const result = method.apply(emitter, args)
    return result === emitter ? existing : result
  }
  Object.defineProperty(existing, name, { value: bound, writable: true, configurable: true })
}
for (const [name, value] of Object.entries(members)) {
  Object.defineProperty(existing, name, { value, writable: true, configurable: true, enumerable: true })
}
Object.defineProperty(existing, Symbol.toStringTag, { value: 'process', configurable: true })

const node = existing as Record<string, unknown> & Emitter
export default node
