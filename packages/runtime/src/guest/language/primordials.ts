// oxlint-disable typescript/unbound-method, typescript/no-unnecessary-type-parameters, typescript/no-unnecessary-type-assertion
// -- taking methods off their objects is the point, and their types must be said anew
/**
 * The language's own functions, taken before any user code runs. Whatever lies between the bridge and user code calls these and
 * never a method of a value: user code may have replaced `Promise.prototype.then` or put setters on `Object.prototype`.
 */
const { bind, call } = Function.prototype

/** Turns a method into a function that takes its `this` first; later changes of the prototype do not touch it. */
export const uncurryThis = bind.bind(call) as <T, A extends unknown[], R>(
  method: (this: T, ...args: A) => R,
) => (self: T, ...args: A) => R

/** The getter of a property that built-in objects of the kind have; it throws for anything else. */
export function getterOf<R>(prototype: object, name: PropertyKey): (self: unknown) => R {
  return uncurryThis(Reflect.getOwnPropertyDescriptor(prototype, name)!.get as (this: unknown) => R)
}

export const {
  apply,
  construct,
  defineProperty,
  deleteProperty,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  ownKeys,
  setPrototypeOf,
} = Reflect
export const SafeObject = Object
export const { entries: objectEntries, hasOwn, is: objectIs, keys: objectKeys } = Object
export const objectToString = uncurryThis(Object.prototype.toString)
export const propertyIsEnumerable = uncurryThis(Object.prototype.propertyIsEnumerable)

export const { isArray } = Array
export const arrayJoin = uncurryThis(Array.prototype.join) as (self: ArrayLike<unknown>, separator: string) => string
export const arraySort = uncurryThis(Array.prototype.sort) as <T>(self: List<T>, compare: (a: T, b: T) => number) => List<T>
export const arraySplice = uncurryThis(Array.prototype.splice) as <T>(self: List<T>, start: number, count: number) => void
/** A copy as an array that may be handed to user code. Only for lists: of an array it would ask `constructor`. */
export const arrayOf = uncurryThis(Array.prototype.slice) as <T>(self: List<T>, start?: number, end?: number) => T[]

export const { fromCharCode } = String
/** A string of UTF-16 units, of which there may be a few thousand at most. */
export const fromUnits = Reflect.apply.bind(Reflect, String.fromCharCode, undefined) as (units: ArrayLike<number>) => string
/** One UTF-16 unit, or '' outside of the text, where an index would look at the prototypes. */
export const stringCharAt = uncurryThis(String.prototype.charAt)
export const stringCharCodeAt = uncurryThis(String.prototype.charCodeAt)
export const stringCodePointAt = uncurryThis(String.prototype.codePointAt)
export const stringEndsWith = uncurryThis(String.prototype.endsWith)
export const stringIndexOf = uncurryThis(String.prototype.indexOf)
export const stringIsWellFormed = uncurryThis(String.prototype.isWellFormed)
export const stringLastIndexOf = uncurryThis(String.prototype.lastIndexOf)
export const stringNormalize = uncurryThis(String.prototype.normalize)
export const stringPadEnd = uncurryThis(String.prototype.padEnd)
export const stringReplaceAll = uncurryThis(
  String.prototype.replaceAll as unknown as (this: string, search: string, replacement: string) => string,
)
export const stringSlice = uncurryThis(String.prototype.slice)
export const stringSplit = uncurryThis(String.prototype.split as unknown as (this: string, separator: string) => string[])
export const stringStartsWith = uncurryThis(String.prototype.startsWith)
export const stringToLowerCase = uncurryThis(String.prototype.toLowerCase)
export const stringToUpperCase = uncurryThis(String.prototype.toUpperCase)
export const stringTrim = uncurryThis(String.prototype.trim)
export const stringToWellFormed = uncurryThis(String.prototype.toWellFormed)
export const stringRepeat = uncurryThis(String.prototype.repeat)
export const { fromCodePoint } = String
export const decodeComponent = decodeURIComponent
export const encodeComponent = encodeURIComponent
/** Unlike `test` this never calls an `exec` that user code put on `RegExp.prototype`. */
export const regExpExec = uncurryThis(RegExp.prototype.exec)

export const json = JSON
export const { parse: jsonParse, stringify: jsonStringify } = json
export const { floor, min, max, trunc } = Math
export const SafeNumber = Number
export const { isInteger, isNaN: numberIsNaN, parseInt: parseInteger } = Number
export const numberToFixed = uncurryThis(Number.prototype.toFixed)
export const numberToString = uncurryThis(Number.prototype.toString)

export const SafeDate = Date
export const dateNow = Date.now
export const dateGetTime = uncurryThis(Date.prototype.getTime)
export const dateToISOString = uncurryThis(Date.prototype.toISOString)
export const dateToString = uncurryThis(Date.prototype.toString)

export const SafePromise = Promise
export const SafeError = Error
export const SafeTypeError = TypeError
export const SafeRangeError = RangeError
export const captureStackTrace = (Error as unknown as { captureStackTrace(target: object): void }).captureStackTrace
export const isError = Error.isError
/** What `instanceof` does, without asking a `Symbol.hasInstance` that the constructor may have been given. */
export const isInstance = uncurryThis(Function.prototype[Symbol.hasInstance]) as (constructor: unknown, value: unknown) => boolean

export const SafeArrayBuffer = ArrayBuffer
export const SafeDataView = DataView
export const SafeFloat64Array = Float64Array
export const SafeUint8Array = Uint8Array
const TypedArray = Object.getPrototypeOf(Uint8Array.prototype) as object
export const bytesSet = uncurryThis(Uint8Array.prototype.set) as (
  self: Uint8Array,
  from: ArrayLike<number>,
  offset?: number,
) => void
export const bytesFromBase64 = Uint8Array.fromBase64.bind(Uint8Array)
export const bytesToBase64 = uncurryThis(Uint8Array.prototype.toBase64) as (self: Uint8Array) => string
export const viewName = getterOf<string | undefined>(TypedArray, Symbol.toStringTag)
export const typedArrayBuffer = getterOf<ArrayBufferLike>(TypedArray, 'buffer')
export const typedArrayByteOffset = getterOf<number>(TypedArray, 'byteOffset')
export const typedArrayByteLength = getterOf<number>(TypedArray, 'byteLength')
export const typedArrayLength = getterOf<number>(TypedArray, 'length')
export const dataViewBuffer = getterOf<ArrayBufferLike>(DataView.prototype, 'buffer')
export const dataViewByteOffset = getterOf<number>(DataView.prototype, 'byteOffset')
export const dataViewByteLength = getterOf<number>(DataView.prototype, 'byteLength')
export const { isView } = ArrayBuffer
export const arrayBufferByteLength = getterOf<number>(ArrayBuffer.prototype, 'byteLength')
export const arrayBufferDetached = getterOf<boolean>(ArrayBuffer.prototype, 'detached')
export const arrayBufferResizable = getterOf<boolean>(ArrayBuffer.prototype, 'resizable')
export const arrayBufferMaxByteLength = getterOf<number>(ArrayBuffer.prototype, 'maxByteLength')
export const arrayBufferTransfer = uncurryThis(ArrayBuffer.prototype.transfer)

/** The Map that user code knows, for what is handed to it. */
export const PlainMap = Map
export const mapSet = uncurryThis(Map.prototype.set) as (self: unknown, key: unknown, value: unknown) => void
export const mapSize = getterOf<number>(Map.prototype, 'size')
export const mapForEach = uncurryThis(Map.prototype.forEach) as (
  self: unknown,
  visit: (value: unknown, key: unknown) => void,
) => void
/** The Set that user code knows, for what is handed to it. */
export const PlainSet = Set
export const setAdd = uncurryThis(Set.prototype.add) as (self: unknown, value: unknown) => void
export const setSize = getterOf<number>(Set.prototype, 'size')
export const setForEach = uncurryThis(Set.prototype.forEach) as (self: unknown, visit: (value: unknown) => void) => void
export const weakMapHas = uncurryThis(WeakMap.prototype.has) as (self: unknown, key: object) => boolean
export const weakSetHas = uncurryThis(WeakSet.prototype.has) as (self: unknown, key: object) => boolean
export const SafeRegExp = RegExp
/** The flags that a regular expression truly has: the getter `flags` would ask properties that user code may have replaced. */
export function regExpFlags(value: unknown): string {
  let flags = ''
  for (let index = 0; index < FLAGS.length; index++) flags += FLAGS[index]!.isSet(value) ? FLAGS[index]!.flag : ''
  return flags
}
const FLAGS = [
  { flag: 'd', isSet: getterOf<boolean>(RegExp.prototype, 'hasIndices') },
  { flag: 'g', isSet: getterOf<boolean>(RegExp.prototype, 'global') },
  { flag: 'i', isSet: getterOf<boolean>(RegExp.prototype, 'ignoreCase') },
  { flag: 'm', isSet: getterOf<boolean>(RegExp.prototype, 'multiline') },
  { flag: 's', isSet: getterOf<boolean>(RegExp.prototype, 'dotAll') },
  { flag: 'u', isSet: getterOf<boolean>(RegExp.prototype, 'unicode') },
  { flag: 'v', isSet: getterOf<boolean>(RegExp.prototype, 'unicodeSets') },
  { flag: 'y', isSet: getterOf<boolean>(RegExp.prototype, 'sticky') },
]
export const regExpSource = getterOf<string>(RegExp.prototype, 'source')
export const asyncIteratorSymbol: symbol = Symbol.asyncIterator
export const iteratorSymbol: symbol = Symbol.iterator
export const symbolToString = uncurryThis(Symbol.prototype.toString)
export const functionToString = uncurryThis(Function.prototype.toString)
export const booleanValueOf = uncurryThis(Boolean.prototype.valueOf) as (self: unknown) => boolean
export const numberValueOf = uncurryThis(Number.prototype.valueOf) as (self: unknown) => number
export const stringValueOf = uncurryThis(String.prototype.valueOf) as (self: unknown) => string
export const bigIntValueOf = uncurryThis(BigInt.prototype.valueOf) as (self: unknown) => bigint
export const symbolValueOf = uncurryThis(Symbol.prototype.valueOf) as (self: unknown) => symbol

/** A part of the bytes, not copied. Unlike `subarray` it asks no species, which user code may have replaced. */
export function bytesPart(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return new SafeUint8Array(typedArrayBuffer(bytes), typedArrayByteOffset(bytes) + start, end - start)
}

/** A copy of the first bytes, by default of all. */
export function bytesCopy(bytes: Uint8Array, length = typedArrayLength(bytes)): Uint8Array<ArrayBuffer> {
  const copy = new SafeUint8Array(length)
  bytesSet(copy, length === typedArrayLength(bytes) ? bytes : bytesPart(bytes, 0, length))
  return copy
}

/** The value of an own property; undefined if there is none, or if it has a getter, which is not called. */
export function ownValue(target: object, key: PropertyKey): unknown {
  const descriptor = getOwnPropertyDescriptor(target, key)
  // A descriptor has the prototype that user code knows: what is not its own may be anything.
  return descriptor !== undefined && hasOwn(descriptor, 'value') ? descriptor.value : undefined
}

function dataProperty(value: unknown, enumerable: boolean): PropertyDescriptor {
  return { __proto__: null, value, writable: true, enumerable, configurable: true } as PropertyDescriptor
}

/** Sets an own property, past any setter that the prototypes may have. */
export function setOwn(target: object, key: PropertyKey, value: unknown): void {
  defineProperty(target, key, dataProperty(value, true))
}

/** Sets an own property that enumeration passes over. */
export function setHidden(target: object, key: PropertyKey, value: unknown): void {
  defineProperty(target, key, dataProperty(value, false))
}

/** Gives a collection class methods of its own, so that nothing is looked up on the prototypes that user code can reach. */
function own<C extends { prototype: object }>(safe: C, original: { prototype: object }): C {
  for (const key of ownKeys(original.prototype)) {
    if (key !== 'constructor') defineProperty(safe.prototype, key, getOwnPropertyDescriptor(original.prototype, key)!)
  }
  setPrototypeOf(safe.prototype, null)
  return safe
}

/** A Map that no change of `Map.prototype` reaches. Do not iterate it: iterators share a prototype with those of user code. */
export const SafeMap = own(class SafeMap<K, V> extends Map<K, V> {}, Map)
export type SafeMap<K, V> = InstanceType<typeof SafeMap<K, V>>
/** A Set that no change of `Set.prototype` reaches. */
export const SafeSet = own(class SafeSet<T> extends Set<T> {}, Set)
export type SafeSet<T> = InstanceType<typeof SafeSet<T>>

/** A WeakMap that no change of `WeakMap.prototype` reaches. */
export const SafeWeakMap = own(class SafeWeakMap<K extends object, V> extends WeakMap<K, V> {}, WeakMap)
export type SafeWeakMap<K extends object, V> = InstanceType<typeof SafeWeakMap<K, V>>

/** What the runtime keeps things in, in order. */
export interface List<T> {
  length: number
  [index: number]: T
}

/**
 * An array that no change of `Array.prototype` reaches: to add to it, or to read past its end, asks no setter or getter that user
 * code may have put there. It has no methods and no iterator.
 */
export const SafeList = class SafeList<T> extends Array<T> {} as unknown as new <T>() => List<T>
deleteProperty(SafeList.prototype as object, 'constructor')
setPrototypeOf(SafeList.prototype as object, null)
