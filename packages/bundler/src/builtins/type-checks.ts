import { support } from './support.ts'

/**
 * What `node:util/types` is in a function: the checks that JavaScript itself can make, of what an object is and not of what it
 * says it is.
 */

const isObject = (value: unknown): value is object => (typeof value === 'object' && value !== null) || typeof value === 'function'

/** Whether a getter or method that only works on objects of its own kind works on this one. */
function brand(prototype: object, key: PropertyKey, ...args: unknown[]): (value: unknown) => boolean {
  const property = Object.getOwnPropertyDescriptor(prototype, key)!
  // oxlint-disable-next-line typescript/unbound-method -- it is called on the value that is checked
  const probe = (property.get ?? property.value) as (...args: unknown[]) => unknown
  return (value) => {
    if (!isObject(value)) return false
    const own = Object.getPrototypeOf(value) as unknown
    // To ask throws an error for whatever is something else, so what is most often asked about is not asked.
    if (own === Object.prototype || Array.isArray(value)) return false
    try {
      probe.apply(value, args)
      return true
    } catch {
      return false
    }
  }
}

const tagOf = (value: unknown): string => Object.prototype.toString.call(value)
// oxlint-disable-next-line typescript/unbound-method -- it is called on the value that is checked
const typedArrayName = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)!.get!
const isTyped = (name: string) => (value: unknown) => typedArrayName.call(value) === name
const boxed = (check: (value: unknown) => boolean) => (value: unknown) => isObject(value) && check(value)

export const isDate = brand(Date.prototype, 'getTime')
export const isMap = brand(Map.prototype, 'size')
export const isSet = brand(Set.prototype, 'size')
export const isWeakMap = brand(WeakMap.prototype, 'has', {})
export const isWeakSet = brand(WeakSet.prototype, 'has', {})
export const isArrayBuffer = brand(ArrayBuffer.prototype, 'byteLength')
// Functions have none.
export const isSharedArrayBuffer =
  'SharedArrayBuffer' in globalThis ? brand(SharedArrayBuffer.prototype, 'byteLength') : () => false
export const isAnyArrayBuffer = (value: unknown): boolean => isArrayBuffer(value) || isSharedArrayBuffer(value)
export const isDataView = brand(DataView.prototype, 'buffer')
export const isRegExp = (value: unknown): boolean =>
  isObject(value) && value !== RegExp.prototype && brand(RegExp.prototype, 'source')(value)
export const isPromise = (value: unknown): boolean => value instanceof Promise
export const isNativeError = (value: unknown): boolean => Error.isError(value)
export const isArrayBufferView = (value: unknown): boolean => ArrayBuffer.isView(value)
export const isTypedArray = (value: unknown): boolean => typedArrayName.call(value) !== undefined
export const isUint8Array = isTyped('Uint8Array')
export const isUint8ClampedArray = isTyped('Uint8ClampedArray')
export const isUint16Array = isTyped('Uint16Array')
export const isUint32Array = isTyped('Uint32Array')
export const isInt8Array = isTyped('Int8Array')
export const isInt16Array = isTyped('Int16Array')
export const isInt32Array = isTyped('Int32Array')
export const isFloat32Array = isTyped('Float32Array')
export const isFloat64Array = isTyped('Float64Array')
export const isBigInt64Array = isTyped('BigInt64Array')
export const isBigUint64Array = isTyped('BigUint64Array')
export const isNumberObject = boxed(brand(Number.prototype, 'valueOf'))
export const isStringObject = boxed(brand(String.prototype, 'valueOf'))
export const isBooleanObject = boxed(brand(Boolean.prototype, 'valueOf'))
export const isBigIntObject = boxed(brand(BigInt.prototype, 'valueOf'))
export const isSymbolObject = boxed(brand(Symbol.prototype, 'valueOf'))
const boxes = [isNumberObject, isStringObject, isBooleanObject, isBigIntObject, isSymbolObject]
export const isBoxedPrimitive = (value: unknown): boolean => boxes.some((check) => check(value))
export const isAsyncFunction = (value: unknown): boolean =>
  typeof value === 'function' && tagOf(value).startsWith('[object Async')
export const isMapIterator = (value: unknown): boolean => isObject(value) && tagOf(value) === '[object Map Iterator]'
export const isSetIterator = (value: unknown): boolean => isObject(value) && tagOf(value) === '[object Set Iterator]'
export const isProxy = (value: unknown): boolean => support.inside(value)?.[0] === 2
export const isExternal = (): boolean => false
export const isModuleNamespaceObject = (value: unknown): boolean => isObject(value) && tagOf(value) === '[object Module]'
export const isFloat16Array = isTyped('Float16Array')
export const isEventTarget = (value: unknown): boolean => value instanceof EventTarget
export const isGeneratorFunction = (value: unknown): boolean =>
  typeof value === 'function' && tagOf(value).endsWith('GeneratorFunction]')
export const isGeneratorObject = (value: unknown): boolean => isObject(value) && tagOf(value).endsWith('Generator]')
export const isArgumentsObject = (value: unknown): boolean => tagOf(value) === '[object Arguments]'
