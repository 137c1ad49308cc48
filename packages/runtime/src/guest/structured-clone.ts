import { brandOf } from './brands.ts'
import { bytesOf } from './buffer-source.ts'
import { DOMException } from './errors/dom-exception.ts'
import { isPlatformObject } from './platform-object.ts'
import {
  arrayBufferTransfer,
  bigIntValueOf,
  booleanValueOf,
  bytesCopy,
  dataViewByteLength,
  dataViewByteOffset,
  dateGetTime,
  getOwnPropertyDescriptor,
  hasOwn,
  isArray,
  isError,
  isView,
  mapForEach,
  numberValueOf,
  objectKeys,
  SafeMap,
  setForEach,
  setHidden,
  setOwn,
  stringValueOf,
  dataViewBuffer,
  typedArrayBuffer,
  typedArrayByteOffset,
  typedArrayLength,
  viewName,
} from './primordials.ts'
import { toText } from './to-text.ts'

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
 * @throws DOMException `DataCloneError` for functions, symbols, promises, weak collections and objects of the web APIs
 */
export function structuredClone(...args: unknown[]): unknown {
  if (args.length === 0) throw new TypeError('structuredClone needs a value.')
  const [value, options] = args as [unknown, { transfer?: Iterable<unknown> } | null | undefined]
  const seen: Seen = new SafeMap()
  const transfer = options?.transfer === undefined ? [] : [...options.transfer]
  for (const item of transfer) checkTransfer(item)
  if (new Set(transfer).size !== transfer.length) throw refuse('An object is listed twice for transfer')
  // A view refers to its buffer, so the copies of transferred buffers must be known before the value is walked; the buffers
  // themselves are only emptied once the walk has succeeded.
  const copies = transfer.map((buffer) => {
    const copy = bytesCopy(bytesOf(buffer)!).buffer
    seen.set(buffer as object, copy)
    return copy
  })
  const result = clone(value, seen)
  if (copies.length > 0) for (const buffer of transfer) arrayBufferTransfer(buffer)
  return result
}

function checkTransfer(item: unknown): void {
  if (typeof item !== 'object' || item === null || brandOf(item) !== 'ArrayBuffer') {
    throw refuse('Only an ArrayBuffer can be transferred')
  }
  if ((item as ArrayBuffer).detached) throw refuse('A detached ArrayBuffer cannot be transferred')
}

function refuse(what: string): DOMException {
  return new DOMException(`${what}.`, 'DataCloneError')
}

function clone(value: unknown, seen: Seen): unknown {
  if (typeof value === 'function') throw refuse(`The function ${value.name || '(anonymous)'} cannot be cloned`)
  if (typeof value === 'symbol') throw refuse(`${value.toString()} cannot be cloned`)
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
      return keep(new Date(dateGetTime(value as Date)))
    case 'RegExp':
      return keep(new RegExp((value as RegExp).source, (value as RegExp).flags))
    case 'ArrayBuffer':
      if ((value as ArrayBuffer).detached) throw refuse('A detached ArrayBuffer cannot be cloned')
      return keep(cloneBuffer(value as ArrayBuffer))
    case 'Boolean':
      return keep(Object(booleanValueOf(value)))
    case 'Number':
      return keep(Object(numberValueOf(value)))
    case 'String':
      return keep(Object(stringValueOf(value)))
    case 'BigInt':
      return keep(Object(bigIntValueOf(value)))
    case 'Map': {
      const copy = keep(new Map<unknown, unknown>())
      const entries: [unknown, unknown][] = []
      mapForEach(value, (item, key) => entries.push([key, item]))
      for (const [key, item] of entries) copy.set(clone(key, seen), clone(item, seen))
      return copy
    }
    case 'Set': {
      const copy = keep(new Set<unknown>())
      const items: unknown[] = []
      setForEach(value, (item) => items.push(item))
      for (const item of items) copy.add(clone(item, seen))
      return copy
    }
    case undefined:
      break
    default:
      throw refuse(`A ${brandOf(value)} cannot be cloned`)
  }
  const kind = uncloneable(value)
  if (kind !== undefined) throw refuse(`A ${kind} cannot be cloned`)
  const copy = keep({})
  cloneProperties(value, copy, seen)
  return copy
}

function uncloneable(value: object): string | undefined {
  if (value instanceof Promise) return 'Promise'
  return isPlatformObject(value) ? value.constructor.name : undefined
}

function cloneProperties(value: object, copy: object, seen: Seen): void {
  for (const key of objectKeys(value)) {
    // An earlier getter may have deleted it.
    if (!hasOwn(value, key)) continue
    const property = clone((value as Record<string, unknown>)[key], seen)
    setOwn(copy, key, property)
  }
}

function cloneBuffer(buffer: ArrayBuffer): ArrayBuffer {
  if (!buffer.resizable) return buffer.slice(0)
  const copy = new ArrayBuffer(buffer.byteLength, { maxByteLength: buffer.maxByteLength })
  new Uint8Array(copy).set(new Uint8Array(buffer))
  return copy
}

function cloneView(view: object, keep: <T>(copy: T) => T, seen: Seen): unknown {
  const name = viewName(view)
  const buffer = name === undefined ? dataViewBuffer(view) : typedArrayBuffer(view)
  const copy = clone(buffer, seen) as ArrayBuffer
  return name === undefined
    ? keep(new DataView(copy, dataViewByteOffset(view), dataViewByteLength(view)))
    : keep(new VIEWS[name]!(copy, typedArrayByteOffset(view), typedArrayLength(view)))
}

function cloneError(error: Error, keep: <T>(copy: T) => T, seen: Seen): unknown {
  if (error instanceof DOMException) {
    const copy = keep(new DOMException(error.message, error.name))
    setHidden(copy, 'stack', error.stack)
    return copy
  }
  const constructor = ERRORS[toText(error.name)] ?? Error
  const message = dataOf(error, 'message')
  const copy = keep(message === undefined ? new constructor() : new constructor(toText(message)))
  const stack: unknown = error.stack
  if (typeof stack === 'string') setHidden(copy, 'stack', stack)
  if (hasOwn(error, 'cause')) {
    setHidden(copy, 'cause', clone(error.cause, seen))
  }
  return copy
}

function dataOf(error: Error, key: string): unknown {
  const descriptor = getOwnPropertyDescriptor(error, key)
  return descriptor?.value as unknown
}
