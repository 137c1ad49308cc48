import { installDate, installDateTimeFormat, installTemporalNow, Performance } from './clock.ts'
import { defineProperty, deleteProperty, objectEntries, objectKeys, setHidden, setOwn } from './language/primordials.ts'
import { installNativeLook } from './language/substitutes.ts'
import { installIntl } from './memory/guest-intl.ts'
import { installArrayBuffer } from './memory/reservation.ts'
import { clearImmediate, clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } from './timers.ts'
import { AbortController, AbortSignal } from './web-api/abort-signal.ts'
import { markPlatformClass } from './web-api/brands.ts'
import { guestConsole } from './web-api/console/console.ts'
import { Crypto, provideSubtle } from './web-api/crypto.ts'
import { DOMException } from './web-api/dom-exception.ts'
import { atob, btoa, TextEncoder } from './web-api/encoding.ts'
import { queueMicrotask, reportError } from './web-api/errors.ts'
import { CustomEvent, Event, EventTarget } from './web-api/events.ts'
import { fetch } from './web-api/fetch/fetch.ts'
import { FormData } from './web-api/fetch/form-data.ts'
import { Headers } from './web-api/fetch/headers.ts'
import { Request } from './web-api/fetch/request.ts'
import { Response } from './web-api/fetch/response.ts'
import { compressionPart, cryptoPart } from './web-api/parts.ts'
import { STREAM_CLASSES, streams } from './web-api/streams.ts'
import { structuredClone } from './web-api/structured-clone.ts'
import { TextDecoder } from './web-api/text-decoder.ts'
import { URLSearchParams } from './web-api/url/search-params.ts'
import { URL } from './web-api/url/url.ts'
import { guestWebAssembly } from './web-assembly/namespace.ts'

const CLASSES = {
  AbortController,
  AbortSignal,
  Crypto,
  CustomEvent,
  DOMException,
  Event,
  EventTarget,
  FormData,
  Headers,
  Performance,
  Request,
  Response,
  TextDecoder,
  TextEncoder,
  URL,
  URLSearchParams,
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
  structuredClone,
}

/** Classes of the parts that are loaded when they are first touched. */
const CRYPTO_CLASSES = ['CryptoKey', 'SubtleCrypto']
const COMPRESSION_CLASSES = ['CompressionStream', 'DecompressionStream']

/** Where the built-in modules of Node.js that a function is bundled with find the parts that they are made of. */
const PARTS_KEY = Symbol.for('carpool.parts')

const processEnv: Record<string, string> = {}

/**
 * What lets code run or wait outside every entry, where nobody is charged and no limit holds: V8 runs the callbacks of finalizers
 * and of WebAssembly's compilation when it likes, and `Atomics.wait` holds a thread without using CPU. Shared memory is a clock,
 * and outlives its isolate. A weak reference tells when V8 collects garbage.
 */
const REMOVED = ['Atomics', 'FinalizationRegistry', 'ShadowRealm', 'SharedArrayBuffer', 'WeakRef', 'WebAssembly']

const target = globalThis
const nativeWebAssembly = WebAssembly

/* oxlint-disable guest/primordials -- runs before any user code */
/** Puts the web APIs on the global object. The one place that says what there is. */
export function installGlobals(): void {
  for (const name of REMOVED) deleteProperty(target, name)
  installNativeLook()
  installArrayBuffer(target)
  installDate(target)
  installTemporalNow()
  installDateTimeFormat()
  installIntl()
  for (const [name, value] of objectEntries(CLASSES)) {
    install(name, value)
    if (value !== DOMException) markPlatformClass(name, value)
  }
  for (const [name, value] of objectEntries(FUNCTIONS)) {
    install(name, value)
    defineProperty(target, name, { enumerable: true })
  }
  for (const name of STREAM_CLASSES) defineLazy(name, () => streams()[name])
  for (const name of CRYPTO_CLASSES) defineLazy(name, () => cryptoPart()[name])
  for (const name of COMPRESSION_CLASSES) defineLazy(name, () => compressionPart()[name])
  provideSubtle(() => cryptoPart()['subtle'])
  setHidden(target, PARTS_KEY, { __proto__: null, crypto: cryptoPart, compression: compressionPart })
  const objects = {
    console: guestConsole,
    crypto: new Crypto(),
    navigator: { userAgent: 'Carpool' },
    performance: new Performance(),
    process: { env: processEnv },
    self: target,
  }
  for (const [name, value] of objectEntries(objects)) {
    setHidden(target, name, value)
  }
}
/* oxlint-enable guest/primordials */

/** Adds WebAssembly, for a function whose memory limit is the given one. Its memories count against that. */
export function addWebAssembly(memoryMb: number): void {
  setHidden(target, 'WebAssembly', guestWebAssembly(nativeWebAssembly, memoryMb))
}

function install(name: string, value: { readonly name: string }): void {
  // The bundler renames what has the name of a global, or refers to itself.
  if (value.name !== name) defineProperty(value, 'name', { value: name })
  setHidden(target, name, value)
}

/** A global that is made when it is first read. */
function defineLazy(name: string, make: () => unknown): void {
  const settle = (value: unknown): void => {
    setHidden(target, name, value)
  }
  defineProperty(target, name, {
    get: () => {
      const value = make()
      settle(value)
      return value
    },
    set: settle,
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
