/** The native part of Node.js' `util`: what looks into values, and names of things. */
import { support } from '../support.ts'
// `util.promisify(setTimeout)` wants it.
import '../timers-promises.ts'

const kPending = 0
const kFulfilled = 1
const kRejected = 2
const PROMISE = 1
const PROXY = 2
const ITERATOR = 3

const constants = {
  kPending,
  kFulfilled,
  kRejected,
  kExiting: 0,
  kExitCode: 0,
  kHasExitCode: 0,
  ALL_PROPERTIES: 0,
  ONLY_WRITABLE: 1,
  ONLY_ENUMERABLE: 2,
  ONLY_CONFIGURABLE: 4,
  SKIP_STRINGS: 8,
  SKIP_SYMBOLS: 16,
  kDisallowCloneAndTransfer: 0,
  kTransferable: 1,
  kCloneable: 2,
}

function getOwnNonIndexProperties(value: object, filter: number): PropertyKey[] {
  return Reflect.ownKeys(value).filter((key) => {
    if (typeof key === 'string' && /^(?:0|[1-9]\d{0,9})$/.test(key) && Number(key) < 2 ** 32 - 1) return false
    return filter !== constants.ONLY_ENUMERABLE || Object.prototype.propertyIsEnumerable.call(value, key)
  })
}

function getPromiseDetails(promise: unknown): readonly unknown[] {
  const found = support.inside(promise)
  if (found?.[0] !== PROMISE) return [kPending, undefined]
  return found[1] === kPending ? [kPending] : [found[1], found[2]]
}

function getProxyDetails(value: unknown, both = true): unknown {
  const found = support.inside(value)
  if (found?.[0] !== PROXY) return undefined
  return both ? [found[1], found[2]] : found[1]
}

function previewEntries(value: Iterable<unknown>, tellsPairs?: boolean): unknown {
  const found = support.inside(value)
  if (found?.[0] === ITERATOR) return tellsPairs === true ? [found[1], found[2]] : found[1]
  if (value instanceof Map) return [...value].flat()
  return value instanceof Set ? [...value] : tellsPairs === true ? [[], false] : []
}

function getConstructorName(value: object): string {
  for (let holder: object | null = value; holder !== null; holder = Object.getPrototypeOf(holder) as object | null) {
    const { value: made } = Object.getOwnPropertyDescriptor(holder, 'constructor') ?? {}
    if (typeof made === 'function' && made.name !== '') return made.name
  }
  return Object.prototype.toString.call(value).slice(8, -1)
}

/** Symbols under names that nothing else has. */
const privateSymbols = Object.fromEntries(
  [
    'arrow_message_private_symbol',
    'contextify_context_private_symbol',
    'decorated_private_symbol',
    'transfer_mode_private_symbol',
    'host_defined_option_symbol',
    'js_transferable_wrapper_private_symbol',
    'entry_point_module_private_symbol',
    'entry_point_promise_private_symbol',
    'module_source_private_symbol',
    'module_export_names_private_symbol',
    'module_circular_visited_private_symbol',
    'module_export_private_symbol',
    'module_first_parent_private_symbol',
    'module_parent_private_symbol',
    'napi_type_tag',
    'napi_wrap',
    'untransferable_object_private_symbol',
    'exit_info_private_symbol',
    'promise_trace_id',
    'source_map_data_private_symbol',
  ].map((name) => [name, Symbol(name)]),
)

/** The bundler makes of the module's name a function that gives the module: see builtin-modules.ts. */
function defineLazyProperties(
  target: object,
  load: () => Readonly<Record<string, unknown>>,
  keys: readonly string[],
  enumerable = true,
): void {
  for (const key of keys) {
    Object.defineProperty(target, key, {
      get: () => load()[key],
      set: (value: unknown) => {
        Object.defineProperty(target, key, { value, writable: true, configurable: true, enumerable })
      },
      configurable: true,
      enumerable,
    })
  }
}

/** `.env` files: `KEY=value`, quotes, comments. */
function parseEnv(text: string): Record<string, string> {
  const result: Record<string, string> = {}
  const line =
    /^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=[ \t]*(?:"([^"]*)"|'([^']*)'|`([^`]*)`|([^#\r\n]*))?[ \t]*(?:#[^\r\n]*)?$/gm
  for (const [, key, double, single, back, bare] of text.matchAll(line)) {
    result[key!] = double?.replaceAll('\\n', '\n') ?? single ?? back ?? bare?.trim() ?? ''
  }
  return result
}

interface CallSite {
  getFunctionName(): string | null
  getFileName(): string | null
  getLineNumber(): number | null
  getColumnNumber(): number | null
}

interface StackHolder {
  prepareStackTrace?: unknown
  stackTraceLimit: number
}

function getCallSites(count: number): object[] {
  const holder = Error as unknown as StackHolder
  const { prepareStackTrace: before, stackTraceLimit } = holder
  holder.prepareStackTrace = (_error: unknown, sites: CallSite[]) => sites
  holder.stackTraceLimit = count + 2
  const sites = (new Error().stack as unknown as CallSite[]).slice(2)
  if (before === undefined) delete holder.prepareStackTrace
  else holder.prepareStackTrace = before
  holder.stackTraceLimit = stackTraceLimit
  return sites.map((site) => ({
    functionName: site.getFunctionName() ?? '',
    scriptId: '0',
    scriptName: site.getFileName() ?? '',
    lineNumber: site.getLineNumber() ?? 0,
    columnNumber: site.getColumnNumber() ?? 0,
    column: site.getColumnNumber() ?? 0,
  }))
}

/** It holds what it refers to: nothing in a function sees what is collected. */
class WeakReference {
  readonly #target: unknown
  constructor(target: unknown) {
    this.#target = target
  }
  get(): unknown {
    return this.#target
  }
  incRef(): void {}
  decRef(): void {}
}

export default {
  constants,
  privateSymbols,
  shouldAbortOnUncaughtToggle: [0],
  getOwnNonIndexProperties,
  getPromiseDetails,
  getProxyDetails,
  getCallerLocation: () => undefined,
  previewEntries,
  getConstructorName,
  getExternalValue: () => 0n,
  getCallSites,
  getCallSite: getCallSites,
  sleep() {},
  isInsideNodeModules: () => false,
  isConstructor: (value: unknown) => {
    try {
      Reflect.construct(Object, [], value as new () => unknown)
      return true
    } catch {
      return false
    }
  },
  guessHandleType: () => 'PIPE',
  toUSVString: (text: string) => String(text).toWellFormed(),
  defineLazyProperties,
  parseEnv,
  arrayBufferViewHasBuffer: () => true,
  isArrayBufferDetached: (buffer: ArrayBuffer) => buffer.detached,
  markPromiseAsHandled: (promise: Promise<unknown>) => {
    promise.catch(() => {})
  },
  getSystemErrorName: (code: number) => `Unknown system error ${code}`,
  getSystemErrorMessage: () => undefined,
  WeakReference,
}
