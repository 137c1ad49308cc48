import type { NodeSupport } from '@carpool/core'
import { installDate, installDateTimeFormat, installTemporalNow } from './clock.ts'
import { installJson } from './language/json.ts'
import { defineProperty, deleteProperty, objectEntries, objectKeys, setHidden, setOwn } from './language/primordials.ts'
import { installNativeLook } from './language/substitutes.ts'
import { installIntl } from './memory/guest-intl.ts'
import { installArrayBuffer } from './memory/reservation.ts'
import type { LibraryName } from '../libraries.ts'
import { library } from './libraries.ts'
import { clearImmediate, clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } from './timers.ts'
import { AbortController, AbortSignal } from './web-api/abort-signal.ts'
import { markPlatformClass } from './web-api/brands.ts'
import { guestConsole } from './web-api/console/console.ts'
import { Crypto } from './web-api/crypto.ts'
import { DOMException } from './web-api/dom-exception.ts'
import { atob, btoa, TextEncoder } from './web-api/encoding.ts'
import { queueMicrotask, reportError } from './web-api/errors.ts'
import { CustomEvent, Event, EventTarget } from './web-api/events.ts'
import { fetch } from './web-api/fetch/fetch.ts'
import { Headers } from './web-api/fetch/headers.ts'
import { Request } from './web-api/fetch/request.ts'
import { Response } from './web-api/fetch/response.ts'
import { Performance } from './web-api/performance.ts'
import { TextDecoder } from './web-api/text-decoder.ts'

const CLASSES = {
  AbortController,
  AbortSignal,
  Crypto,
  CustomEvent,
  DOMException,
  Event,
  EventTarget,
  Headers,
  Performance,
  Request,
  Response,
  TextDecoder,
  TextEncoder,
}

const FUNCTIONS = {
  atob,
  btoa,
  clearImmediate,
  clearInterval,
  clearTimeout,
  fetch,
  queueMicrotask,
  reportError,
  setImmediate,
  setInterval,
  setTimeout,
}

/** What libraries have: each is loaded when one of its names is first read. */
const LAZY = {
  clone: ['structuredClone'],
  compression: ['CompressionStream', 'DecompressionStream'],
  crypto: ['CryptoKey', 'SubtleCrypto'],
  'encoding-streams': ['TextDecoderStream', 'TextEncoderStream'],
  encodings: [],
  events: ['ErrorEvent', 'PromiseRejectionEvent', 'addEventListener', 'dispatchEvent', 'removeEventListener'],
  files: ['Blob', 'File', 'FormData'],
  language: ['FinalizationRegistry', 'WeakRef'],
  messages: ['MessageChannel', 'MessageEvent', 'MessagePort'],
  performance: [
    'PerformanceEntry',
    'PerformanceMark',
    'PerformanceMeasure',
    'PerformanceObserver',
    'PerformanceObserverEntryList',
  ],
  streams: [
    'ByteLengthQueuingStrategy',
    'CountQueuingStrategy',
    'ReadableByteStreamController',
    'ReadableStream',
    'ReadableStreamBYOBReader',
    'ReadableStreamBYOBRequest',
    'ReadableStreamDefaultController',
    'ReadableStreamDefaultReader',
    'TransformStream',
    'TransformStreamDefaultController',
    'WritableStream',
    'WritableStreamDefaultController',
    'WritableStreamDefaultWriter',
  ],
  url: ['URL', 'URLSearchParams'],
  'url-pattern': ['URLPattern'],
  'web-assembly': [],
  'web-sockets': ['CloseEvent', 'WebSocket', 'WebSocketPair'],
} as const satisfies Record<LibraryName, readonly string[]>

/** What `performance` has of the library. */
const TIMING = ['clearMarks', 'clearMeasures', 'getEntries', 'getEntriesByName', 'getEntriesByType', 'mark', 'measure'] as const

/** Attributes of the global object for the handlers of its events. */
const WORLD_HANDLERS = ['onerror', 'onrejectionhandled', 'onunhandledrejection'] as const

const processEnv: Record<string, string> = {}

/**
 * What lets code run or wait outside every entry, where nobody is charged and no limit holds: V8 runs the callbacks of finalizers
 * and of WebAssembly's compilation when it likes, and `Atomics.wait` holds a thread without using CPU. Shared memory is a clock,
 * and outlives its isolate. A weak reference tells when V8 collects garbage: the library `language` has classes of these names
 * that never see anything collected.
 */
const REMOVED = ['FinalizationRegistry', 'ShadowRealm', 'SharedArrayBuffer', 'WeakRef', 'WebAssembly']
/** Of `Atomics`. What is left works on memory that nobody shares. */
const REMOVED_ATOMICS = ['notify', 'pause', 'wait', 'waitAsync']

const target: object = globalThis
const nativeWebAssembly = WebAssembly

/* oxlint-disable guest/primordials -- runs before any user code */
/** Puts the web APIs on the global object. The one place that says what there is. */
export function installGlobals(): void {
  for (const name of REMOVED) deleteProperty(target, name)
  for (const name of REMOVED_ATOMICS) deleteProperty(Atomics, name)
  installNativeLook()
  installArrayBuffer(target)
  installDate(target)
  installTemporalNow()
  installDateTimeFormat()
  installIntl()
  installJson()
  for (const [name, value] of objectEntries(CLASSES)) {
    install(name, value)
    if (value !== DOMException) markPlatformClass(name, value)
  }
  for (const [name, value] of objectEntries(FUNCTIONS)) {
    install(name, value)
    defineProperty(target, name, { enumerable: true })
  }
  for (const [name, exported] of objectEntries(LAZY)) {
    for (const one of exported) defineLazy(target, one, () => (library(name as LibraryName) as Record<string, unknown>)[one])
  }
  for (const name of TIMING) defineLazy(Performance.prototype, name, () => library('performance')[name])
  for (const name of WORLD_HANDLERS) installHandler(name)
  const objects = {
    console: guestConsole,
    crypto: new Crypto(),
    navigator: { hardwareConcurrency: 1, language: 'en-US', languages: ['en-US'], platform: 'linux', userAgent: 'Carpool' },
    performance: new Performance(),
    process: { env: processEnv },
    self: target,
  }
  for (const [name, value] of objectEntries(objects)) {
    setHidden(target, name, value)
  }
}
/* oxlint-enable guest/primordials */

/**
 * Adds WebAssembly, for a function whose memory limit is the given one. Its memories count against that.
 * @param compiles whether the function may compile what it likes, or only what its bundle has
 * @returns what compiles that
 */
export function addWebAssembly(memoryMb: number, compiles: boolean): NodeSupport['webAssembly'] {
  const { namespace, compileFiles } = library('web-assembly').guestWebAssembly(nativeWebAssembly, memoryMb, compiles)
  setHidden(target, 'WebAssembly', namespace)
  return compileFiles
}

function install(name: string, value: { readonly name: string }): void {
  // The bundler renames what has the name of a global, or refers to itself.
  if (value.name !== name) defineProperty(value, 'name', { value: name })
  setHidden(target, name, value)
}

/** A property that is made when it is first read. */
function defineLazy(owner: object, name: string, make: () => unknown): void {
  const settle = (value: unknown): void => {
    setHidden(owner, name, value)
  }
  defineProperty(owner, name, {
    get: () => {
      const value = make()
      settle(value)
      return value
    },
    set: settle,
    configurable: true,
  })
}

/** An attribute that loads the library of events when it is first set. */
function installHandler(name: (typeof WORLD_HANDLERS)[number]): void {
  defineProperty(target, name, {
    get: () => null,
    set: (value: unknown) => {
      if (value === null || value === undefined) return
      library('events').installWorld(target)
      ;(target as Record<string, unknown>)[name] = value
    },
    enumerable: true,
    configurable: true,
  })
}

/** Gives `process.env` the variables of the function. */
export function fillProcess(env: Readonly<Record<string, string>>): void {
  const names = objectKeys(env)
  for (let index = 0; index < names.length; index++) {
    const name = names[index]!
    setOwn(processEnv, name, env[name])
  }
}
