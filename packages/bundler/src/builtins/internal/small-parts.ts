/**
 * What stands behind the smaller parts of Node.js that its own modules build on: the web's globals, settings that no one has
 * made, and traces that no one reads.
 */
import facts from 'carpool-node:facts'
import lists from 'carpool-node:lists'
import { AsyncResource } from '../async-hooks.ts'
import { support } from '../support.ts'

const world = globalThis as unknown as Record<string, unknown>
const nothing = (): void => {}
declare const reportError: (error: unknown) => void

/** Reads globals when they are first wanted: many are made only then. */
function globals(...names: readonly string[]): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const name of names) Object.defineProperty(result, name, { get: () => world[name], enumerable: true })
  return result
}

const OPTIONS: Readonly<Record<string, unknown>> = {
  '--stack-trace-limit': 10,
  '--max-http-header-size': 16_384,
  '--network-family-autoselection': true,
  '--network-family-autoselection-attempt-timeout': 500,
}
export const options = {
  getOptionValue: (name: string) => OPTIONS[name],
  getEmbedderOptions: () => ({}),
  refreshOptions: nothing,
}

export const startupSnapshot = {
  addAfterUserSerializeDeserializeSnapshot: nothing,
  addDeserializeCallback: nothing,
  addSerializeCallback: nothing,
  isBuildingSnapshot: () => false,
  namespace: {
    addAfterUserSerializeDeserializeSnapshot: nothing,
    addDeserializeCallback: nothing,
    addSerializeCallback: nothing,
    isBuildingSnapshot: () => false,
  },
}

export const eventTarget = {
  isEventTarget: (value: unknown) => value instanceof EventTarget,
  kEvents: Symbol('kEvents'),
  kResistStopPropagation: Symbol('kResistStopPropagation'),
  kWeakHandler: Symbol('kWeak'),
}

export const taskQueues = globals('queueMicrotask')
export const execution = { tryGetCwd: () => facts.root }
export const warning = { emitWarningSync: nothing }
export const sourceMaps = { findSourceMap: nothing, sourceMapCacheToObject: nothing }

export const abortController = {
  ...Object.defineProperties({}, Object.getOwnPropertyDescriptors(globals('AbortController', 'AbortSignal'))),
  get AbortController(): unknown {
    return world['AbortController']
  },
  get AbortSignal(): unknown {
    return world['AbortSignal']
  },
  transferableAbortController: () => new AbortController(),
  transferableAbortSignal: (signal: unknown) => signal,
  aborted: async (signal: AbortSignal): Promise<void> => {
    if (signal.aborted) return
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  },
}

export const encoding = globals('TextDecoder', 'TextEncoder')

export const blob = Object.defineProperties(
  {
    isBlob: (value: unknown) => typeof world['Blob'] === 'function' && value instanceof (world['Blob'] as typeof Blob),
    resolveObjectURL: (url: unknown) => support.resolveObjectURL(String(url)),
  },
  Object.getOwnPropertyDescriptors(globals('Blob')),
)
export const file = globals('File')

/** `current()`: whether anything is carried at all. */
export const asyncContextFrame = {
  current: () => support.carried(),
  set: (frame: unknown) => support.carry(frame),
  exchange: (frame: unknown) => {
    const before = support.carried()
    support.carry(frame)
    return before
  },
}

export const asyncHooks = {
  AsyncResource,
  defaultTriggerAsyncIdScope: (_id: number, callback: (...args: unknown[]) => unknown, ...args: unknown[]) => callback(...args),
  enabledHooksExist: () => false,
  getOrSetAsyncId: () => 1,
  newAsyncId: () => 1,
  symbols: { async_id_symbol: Symbol('async_id_symbol'), owner_symbol: Symbol('owner_symbol') },
}

const no = (): boolean => false
export const realm = { BuiltinModule: { exists: no, canBeRequiredByUsers: no, normalizeRequirableId: nothing } }
export const moduleHelpers = { getRequireStack: () => [], urlToFilename: String }
export const traceEvents = {
  categoryEnabledChecker: () => no,
  isTraceHTTPEnabled: no,
  nodeTraceEventCategory: String,
  trace: nothing,
  kAsyncBegin: 0,
  kAsyncEnd: 0,
}

/**
 * The timer of a socket's `setTimeout`, which every byte that comes or goes sets back: it notes when, and looks at that when
 * its time is over, so that a busy socket costs no timer of the host for each byte.
 */
class IdleTimer {
  readonly #callback: (arg: unknown) => void
  readonly #arg: unknown
  #ms: number
  #sinceMs = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #isClosed = false

  constructor(callback: (arg: unknown) => void, ms: number, arg: unknown) {
    this.#callback = callback
    this.#ms = ms
    this.#arg = arg
    this.refresh()
  }
  restart(ms: number): void {
    this.close()
    this.#ms = ms
    this.#isClosed = false
    this.refresh()
  }
  refresh(): this {
    // The socket keeps it, and sets it back with every byte, also after `setTimeout(0)`.
    if (this.#isClosed) return this
    this.#sinceMs = performance.now()
    this.#timer ??= globalThis.setTimeout(() => this.#look(), this.#ms)
    return this
  }
  close(): void {
    this.#isClosed = true
    globalThis.clearTimeout(this.#timer)
    this.#timer = undefined
  }
  [Symbol.toPrimitive](): number {
    return Number(this.#timer ?? 0)
  }
  #look(): void {
    this.#timer = undefined
    const leftMs = this.#sinceMs + this.#ms - performance.now()
    if (leftMs <= 0) return this.#callback(this.#arg)
    this.#timer = globalThis.setTimeout(() => this.#look(), leftMs)
  }
}

/** What else is kept for a while is kept for a microtask: it needs no timer of the host. */
export const timers = {
  kTimeout: Symbol('timeout'),
  setUnrefTimeout: (callback: () => void) => {
    globalThis.queueMicrotask(callback)
  },
  clearTimeout: nothing,
  reuseOrCreateUnrefTimeout: (timer: IdleTimer | null, callback: (arg: unknown) => void, ms: number, arg: unknown) => {
    if (timer === null) return new IdleTimer(callback, ms, arg)
    timer.restart(ms)
    return timer
  },
  getTimerDuration: Number,
  TIMEOUT_MAX: 2 ** 31 - 1,
}
export const timersBinding = { getLibuvNow: () => performance.now() }
/** `node:net` clears the timers of its sockets, which are of two kinds. */
export const netTimers = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: (timer: unknown) => {
    if (timer instanceof IdleTimer) timer.close()
    else globalThis.clearTimeout(timer as number)
  },
}
export const caresWrap = {
  /** As they are compared with those of a certificate. */
  canonicalizeIP: (address: string) => {
    try {
      return address.includes(':') ? new URL(`ws://[${address}]`).hostname.slice(1, -1) : new URL(`ws://${address}`).hostname
    } catch {
      return undefined
    }
  },
  convertIpv6StringToBuffer: nothing,
}
/** Of what `node:tls` asks OpenSSL, which the host has. */
export const cryptoBinding = {
  getBundledRootCertificates: () => [],
  getExtraCACertificates: () => [],
  getSystemCACertificates: () => [],
  getUserRootCertificates: () => [],
  getCertificateCompressionAlgorithms: () => [],
  getSSLCiphers: () => ['tls_aes_256_gcm_sha384', 'tls_chacha20_poly1305_sha256', 'tls_aes_128_gcm_sha256'],
  resetRootCertStore: nothing,
  startLoadingCertificatesOffThread: nothing,
}
/** It can be made, as packages do when they are loaded. */
class BlockList {
  static isBlockList(value: unknown): boolean {
    return value instanceof BlockList
  }
  addAddress(): never {
    const error = new Error("node:net.BlockList is not available in a function: what it may reach is the host's to say.")
    throw Object.assign(error, { code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' })
  }
  addRange(): never {
    return this.addAddress()
  }
  addSubnet(): never {
    return this.addAddress()
  }
}
export const blockLists = { BlockList }
export const socketAddresses = { SocketAddress: class SocketAddress {} }
export const performanceObserver = { hasObserver: no, startPerf: nothing, stopPerf: nothing }
export const errorSource = { getErrorSourceExpression: nothing, getErrorSourcePositions: nothing }
export const glob = {
  matchGlobPattern: () => {
    throw new Error('path.matchesGlob is not available in a function.')
  },
}
export const streamIteration = { kValidatedSource: Symbol('kValidatedSource') }
/** Lines that were typed before: nobody types. */
export const history = {
  ReplHistory: class {
    readonly history: string[] = []
    index = -1
    size = 0
    isFlushing = false
    initialize(): void {}
    addHistory(_isMultiline: unknown, _last: unknown): string {
      return ''
    }
    canNavigateToNext(): boolean {
      return false
    }
    canNavigateToPrevious(): boolean {
      return false
    }
  },
}

export const transferable = {
  markTransferMode: nothing,
  ...Object.fromEntries(['kClone', 'kDeserialize', 'kTransfer', 'kTransferList'].map((name) => [name, Symbol(name)])),
}

export const tty = { getColorDepth: () => 1 }

export const config = {
  hasIntl: true,
  hasInspector: false,
  hasOpenSSL: true,
  fipsMode: false,
  hasTracing: false,
  bits: 64,
  isDebugBuild: false,
}

const NO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u
const WIDE =
  /^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]$/u

export const icu = {
  /** Columns in a terminal. */
  getStringWidth: (text: string) => {
    let width = 0
    for (const letter of text) width += NO_WIDTH.test(letter) ? 0 : WIDE.test(letter) ? 2 : 1
    return width
  },
  icuErrName: (code: number) => `ICU error ${code}`,
  transcode: (source: Buffer, from: BufferEncoding, to: BufferEncoding) =>
    (source.constructor as typeof Buffer).from(source.toString(from), to),
  hasConverter: no,
  toASCII: (name: string) => hostOf(name),
}

/** A domain as it stands in a URL; '' if it is none. */
export function hostOf(name: string): string {
  try {
    const url = new URL('ws://x')
    url.hostname = name
    return name === '' ? '' : new URL(`ws://${name}`).hostname
  } catch {
    return ''
  }
}

export const diagnostics = {
  subscribers: [] as number[],
  linkNativeChannel: nothing,
  notifyChannelActive: nothing,
  notifyChannelInactive: nothing,
}
export const errors = {
  noSideEffectsToString: String,
  triggerUncaughtException: (error: unknown) => {
    reportError(error)
  },
  exitCodes: { kNoFailure: 0, kGenericUserError: 1 },
}
export const constants = { os: lists.osConstants, fs: lists.fsConstants, crypto: {}, zlib: {}, trace: {} }
export const messaging = globals('DOMException', 'MessageChannel')
export const profiler = { setCoverageDirectory: nothing, setSourceMapCacheGetter: nothing }
export const osBinding = { getOSInformation: () => ['Linux', '#1 SMP', '6.0.0', 'x86_64'] }

const { errorNames } = lists
const errorMap = new Map(Object.entries(errorNames).map(([code, named]) => [Number(code), named]))
export const uv = {
  getErrorMap: () => errorMap,
  getErrorMessage: (code: number) => errorMap.get(code)?.[1],
  errname: (code: number) => errorMap.get(code)?.[0] ?? `Unknown system error ${code}`,
  ...Object.fromEntries(Object.entries(errorNames).map(([code, [name]]) => [`UV_${name}`, Number(code)])),
}

const METHODS =
  'ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL MOVE NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE'.split(
    ' ',
  )
/** Nothing is parsed: requests come as objects. */
class HTTPParser {
  static readonly REQUEST = 1
  static readonly RESPONSE = 2
  static readonly kOnMessageBegin = 0
  static readonly kOnHeaders = 1
  static readonly kOnHeadersComplete = 2
  static readonly kOnBody = 3
  static readonly kOnMessageComplete = 4
  static readonly kOnExecute = 5
  static readonly kOnTimeout = 6
  static readonly kLenientNone = 0
  static readonly kLenientAll = 255
}
export const httpParser = { methods: METHODS, allMethods: METHODS, HTTPParser, ConnectionsList: class {} }
export const urlBinding = {
  format: (href: string, hasHash: boolean, isUnicode: boolean, hasSearch: boolean, hasAuth: boolean) => {
    const url = new URL(href)
    if (!hasHash) url.hash = ''
    if (!hasSearch) url.search = ''
    if (!hasAuth) {
      url.username = ''
      url.password = ''
    }
    return isUnicode ? url.href.replace(url.hostname, unicodeOf(url.hostname)) : url.href
  },
  domainToASCII: hostOf,
  domainToUnicode: (name: string) => unicodeOf(hostOf(name)),
}
export const urlPattern = globals('URLPattern')
export const encodingBinding = { toASCII: hostOf, toUnicode: (name: string) => unicodeOf(name) }

const BASE = 36
const [T_MIN, T_MAX, SKEW, DAMP] = [1, 26, 38, 700]

/** Decodes the labels that begin with `xn--` (RFC 3492, section 6.2). */
export function unicodeOf(name: string): string {
  return name
    .split('.')
    .map((label) => (label.startsWith('xn--') ? decodeLabel(label.slice(4)) : label))
    .join('.')
}

function decodeLabel(text: string): string {
  const end = Math.max(0, text.lastIndexOf('-'))
  const points = Array.from(text.slice(0, end), (letter) => letter.codePointAt(0)!)
  let code = 128
  let position = 0
  let bias = 72
  for (let index = end > 0 ? end + 1 : 0; index < text.length; ) {
    const before = position
    let weight = 1
    for (let step = BASE; ; step += BASE) {
      const letter = text.charCodeAt(index++)
      const digit = letter >= 97 ? letter - 97 : letter >= 65 ? letter - 65 : letter - 22
      position += digit * weight
      const threshold = step <= bias ? T_MIN : step >= bias + T_MAX ? T_MAX : step - bias
      if (digit < threshold) break
      weight *= BASE - threshold
    }
    const count = points.length + 1
    let delta = before === 0 ? Math.floor((position - before) / DAMP) : (position - before) >> 1
    delta += Math.floor(delta / count)
    let steps = 0
    for (; delta > ((BASE - T_MIN) * T_MAX) >> 1; steps += BASE) delta = Math.floor(delta / (BASE - T_MIN))
    bias = steps + Math.floor(((BASE - T_MIN + 1) * delta) / (delta + SKEW))
    code += Math.floor(position / count)
    position %= count
    points.splice(position++, 0, code)
  }
  return String.fromCodePoint(...points)
}
