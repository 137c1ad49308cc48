import { guestConsole } from './console/console.ts'
import { Crypto } from './crypto.ts'
import { atob, btoa } from './encoding/base64.ts'
import { TextDecoder } from './encoding/text-decoder.ts'
import { TextEncoder } from './encoding/text-encoder.ts'
import { DOMException } from './errors/dom-exception.ts'
import { reportError } from './errors/report-uncaught.ts'
import { AbortController, AbortSignal } from './events/abort-signal.ts'
import { EventTarget } from './events/event-target.ts'
import { CustomEvent, Event } from './events/event.ts'
import { fetch } from './fetch/fetch.ts'
import { FormData } from './fetch/form-data.ts'
import { Headers } from './fetch/headers.ts'
import { Request } from './fetch/request.ts'
import { Response } from './fetch/response.ts'
import { installArrayBuffer } from './memory/guest-array-buffer.ts'
import { installIntl } from './memory/guest-intl.ts'
import { installNativeLook } from './native-look.ts'
import { markPlatformClass } from './platform-object.ts'
import { deleteProperty, defineProperty, objectEntries, objectKeys, setHidden, setOwn } from './primordials.ts'
import { queueMicrotask } from './queue-microtask.ts'
import { STREAM_CLASSES, streams } from './streams.ts'
import { structuredClone } from './structured-clone.ts'
import { installDateTimeFormat } from './time/guest-date-format.ts'
import { installDate } from './time/guest-date.ts'
import { installTemporalNow } from './time/guest-temporal.ts'
import { Performance } from './time/performance.ts'
import { clearImmediate, clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } from './timers.ts'
import { URLSearchParams } from './url/url-search-params.ts'
import { URL } from './url/url.ts'
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

const processEnv: Record<string, string> = {}

/**
 * What lets code run or wait outside every entry, where nobody is charged for it and no limit holds: V8 runs the callbacks of finalizers and of
 * WebAssembly's compilation when it likes, and `Atomics.wait` holds a thread without using CPU. Memory that is shared is a clock, and outlives its
 * isolate; a weak reference tells when V8 collects garbage.
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
