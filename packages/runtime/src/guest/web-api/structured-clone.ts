import {
  arrayOf,
  arrayBufferByteLength,
  arrayBufferDetached,
  arrayBufferMaxByteLength,
  arrayBufferResizable,
  arrayBufferTransfer,
  bigIntValueOf,
  booleanValueOf,
  bytesCopy,
  bytesSet,
  dataViewBuffer,
  dataViewByteLength,
  dataViewByteOffset,
  dateGetTime,
  hasOwn,
  isArray,
  isError,
  isInstance,
  isView,
  type List,
  mapForEach,
  mapSet,
  numberValueOf,
  objectKeys,
  ownValue,
  PlainMap,
  PlainSet,
  regExpFlags,
  regExpSource,
  SafeArrayBuffer,
  SafeDataView,
  SafeDate,
  SafeError,
  SafeList,
  SafeMap,
  SafeObject,
  SafePromise,
  SafeRegExp,
  SafeSet,
  SafeTypeError,
  SafeUint8Array,
  setAdd,
  setForEach,
  setHidden,
  setOwn,
  stringValueOf,
  symbolToString,
  typedArrayBuffer,
  typedArrayByteOffset,
  typedArrayLength,
  viewName,
} from '../language/primordials.ts'
import { bytesOf, toText, valuesOf } from '../language/values.ts'
import { loadedLibrary, resizableBuffer } from './host.ts'
import { brandOf, platformClassOf } from './brands.ts'
import { copyDomException, DOMException, isDomException } from './dom-exception.ts'

const ERRORS = {
  __proto__: null,
  Error,
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
} as unknown as Record<string, ErrorConstructor | undefined>
const VIEWS = {
  __proto__: null,
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float16Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
} as unknown as Record<string, Uint8ArrayConstructor>

type Seen = SafeMap<object, unknown>

/**
 * Copies a value as the HTML standard's structured clone does, cycles included.
 * @throws DOMException `DataCloneError` for functions, symbols, promises, weak collections and most objects of the web APIs
 */
export function structuredClone(...args: unknown[]): unknown {
  if (args.length === 0) throw new SafeTypeError('structuredClone needs a value.')
  const options = args.length === 1 ? undefined : (args[1] as { transfer?: Iterable<unknown> } | null | undefined)
  return cloneMessage(args[0], options?.transfer).value
}

export interface ClonedMessage {
  readonly value: unknown
  /** What became of the ports that were transferred, in their order. */
  readonly ports: unknown[]
}

/** The same, for a message that may have ports with it. */
export function cloneMessage(value: unknown, transferred: Iterable<unknown> | undefined): ClonedMessage {
  const seen: Seen = new SafeMap()
  const transfer = transferOf(transferred)
  const ports = new SafeList<unknown>()
  // A view refers to its buffer, so the copies of transferred buffers must be known before the value is walked; the buffers
  // themselves are only emptied once the walk has succeeded.
  for (let index = 0; index < transfer.length; index++) {
    const item = transfer[index]!
    const messages = loadedLibrary('messages')
    if (messages?.isPort(item)) {
      const port = messages.newPort()
      seen.set(item, port)
      ports[ports.length] = port
    } else seen.set(item, typedArrayBuffer(bytesCopy(bytesOf(item)!)))
  }
  const result = clone(value, seen)
  for (let index = 0; index < transfer.length; index++) {
    const item = transfer[index]!
    const messages = loadedLibrary('messages')
    if (messages?.isPort(item)) messages.movePort(item, seen.get(item) as typeof item)
    else arrayBufferTransfer(item)
  }
  return { value: result, ports: arrayOf(ports) }
}

function transferOf(listed: Iterable<unknown> | undefined): List<object> {
  const objects = new SafeList<object>()
  if (listed === undefined) return objects
  const items = valuesOf(listed)
  const unique = new SafeSet<unknown>()
  for (let index = 0; index < items.length; index++) {
    const item = items[index]
    const messages = loadedLibrary('messages')
    if (messages?.isPort(item)) {
      if (messages.isDetached(item)) throw refuse('A detached MessagePort cannot be transferred')
    } else {
      if (typeof item !== 'object' || item === null || brandOf(item) !== 'ArrayBuffer') {
        throw refuse('Only an ArrayBuffer or a MessagePort can be transferred')
      }
      if (arrayBufferDetached(item)) throw refuse('A detached ArrayBuffer cannot be transferred')
    }
    if (unique.has(item)) throw refuse('An object is listed twice for transfer')
    unique.add(item)
    objects[index] = item
  }
  return objects
}

function refuse(what: string): DOMException {
  return new DOMException(`${what}.`, 'DataCloneError')
}

function clone(value: unknown, seen: Seen): unknown {
  if (typeof value === 'function') throw refuse(`The function ${value.name || '(anonymous)'} cannot be cloned`)
  if (typeof value === 'symbol') throw refuse(`${symbolToString(value)} cannot be cloned`)
  if (typeof value !== 'object' || value === null) return value
  if (seen.has(value)) return seen.get(value)
  return cloneObject(value, seen)
}

function cloneObject(value: object, seen: Seen): unknown {
  const keep = <T>(copy: T): T => {
    seen.set(value, copy)
    return copy
  }
  if (isArray(value)) {
    const copy = keep<unknown[]>([])
    copy.length = value.length
    cloneProperties(value, copy, seen)
    return copy
  }
  if (isError(value)) return cloneError(value, keep, seen)
  if (isView(value)) return cloneView(value, keep, seen)
  switch (brandOf(value)) {
    case 'Date':
      return keep(new SafeDate(dateGetTime(value as Date)))
    case 'RegExp':
      return keep(new SafeRegExp(regExpSource(value), regExpFlags(value)))
    case 'ArrayBuffer':
      if (arrayBufferDetached(value)) throw refuse('A detached ArrayBuffer cannot be cloned')
      return keep(cloneBuffer(value as ArrayBuffer))
    case 'Boolean':
      return keep(SafeObject(booleanValueOf(value)))
    case 'Number':
      return keep(SafeObject(numberValueOf(value)))
    case 'String':
      return keep(SafeObject(stringValueOf(value)))
    case 'BigInt':
      return keep(SafeObject(bigIntValueOf(value)))
    case 'Map': {
      const copy = keep(new PlainMap<unknown, unknown>())
      // Copied first: a getter in what is cloned may change the map.
      const keys = new SafeList<unknown>()
      const items = new SafeList<unknown>()
      mapForEach(value, (item, key) => {
        keys[keys.length] = key
        items[items.length] = item
      })
      for (let index = 0; index < keys.length; index++) mapSet(copy, clone(keys[index], seen), clone(items[index], seen))
      return copy
    }
    case 'Set': {
      const copy = keep(new PlainSet<unknown>())
      const items = new SafeList<unknown>()
      setForEach(value, (item) => {
        items[items.length] = item
      })
      for (let index = 0; index < items.length; index++) setAdd(copy, clone(items[index], seen))
      return copy
    }
    case undefined:
      break
    default:
      throw refuse(`A ${brandOf(value)} cannot be cloned`)
  }
  const files = loadedLibrary('files')
  if (files?.isBlob(value)) return keep(files.copyBlob(value))
  const kind = uncloneable(value)
  if (kind !== undefined) throw refuse(`A ${kind} cannot be cloned`)
  const copy = keep({})
  cloneProperties(value, copy, seen)
  return copy
}

function uncloneable(value: object): string | undefined {
  return isInstance(SafePromise, value) ? 'Promise' : platformClassOf(value)
}

function cloneProperties(value: object, copy: object, seen: Seen): void {
  const keys = objectKeys(value)
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index]!
    // An earlier getter may have deleted it.
    if (!hasOwn(value, key)) continue
    const property = clone((value as Record<string, unknown>)[key], seen)
    setOwn(copy, key, property)
  }
}

function cloneBuffer(buffer: ArrayBuffer): ArrayBuffer {
  const copy = arrayBufferResizable(buffer)
    ? resizableBuffer(arrayBufferByteLength(buffer), arrayBufferMaxByteLength(buffer))
    : new SafeArrayBuffer(arrayBufferByteLength(buffer))
  bytesSet(new SafeUint8Array(copy), new SafeUint8Array(buffer))
  return copy
}

function cloneView(view: object, keep: <T>(copy: T) => T, seen: Seen): unknown {
  const name = viewName(view)
  const buffer = name === undefined ? dataViewBuffer(view) : typedArrayBuffer(view)
  const copy = clone(buffer, seen) as ArrayBuffer
  return name === undefined
    ? keep(new SafeDataView(copy, dataViewByteOffset(view), dataViewByteLength(view)))
    : keep(new VIEWS[name]!(copy, typedArrayByteOffset(view), typedArrayLength(view)))
}

function cloneError(error: Error, keep: <T>(copy: T) => T, seen: Seen): unknown {
  if (isDomException(error)) {
    const copy = keep(copyDomException(error))
    setHidden(copy, 'stack', error.stack)
    return copy
  }
  const constructor = ERRORS[toText(error.name)] ?? SafeError
  const message = ownValue(error, 'message')
  const copy = keep(message === undefined ? new constructor() : new constructor(toText(message)))
  const stack: unknown = error.stack
  if (typeof stack === 'string') setHidden(copy, 'stack', stack)
  if (hasOwn(error, 'cause')) {
    setHidden(copy, 'cause', clone(error.cause, seen))
  }
  return copy
}
