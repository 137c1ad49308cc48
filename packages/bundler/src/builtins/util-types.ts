/** `node:util/types` in a function: the checks that JavaScript itself can make, of what an object is and not of what it says it is. */

/** Whether a getter or method that only works on objects of its own kind works on this one. */
function brand(prototype: object, key: PropertyKey, ...args: unknown[]): (value: unknown) => boolean {
  const property = Object.getOwnPropertyDescriptor(prototype, key)!
  // oxlint-disable-next-line typescript/unbound-method -- it is called on the value that is checked
  const probe = (property.get ?? property.value) as (...args: unknown[]) => unknown
  return (value) => {
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
const isObject = (value: unknown): value is object => (typeof value === 'object' && value !== null) || typeof value === 'function'
const boxed = (check: (value: unknown) => boolean) => (value: unknown) => isObject(value) && check(value)

const isDate = brand(Date.prototype, 'getTime')
const isMap = brand(Map.prototype, 'size')
const isSet = brand(Set.prototype, 'size')
const isWeakMap = brand(WeakMap.prototype, 'has', {})
const isWeakSet = brand(WeakSet.prototype, 'has', {})
const isArrayBuffer = brand(ArrayBuffer.prototype, 'byteLength')
// Functions have none.
const isSharedArrayBuffer = 'SharedArrayBuffer' in globalThis ? brand(SharedArrayBuffer.prototype, 'byteLength') : () => false
const isAnyArrayBuffer = (value: unknown): boolean => isArrayBuffer(value) || isSharedArrayBuffer(value)
const isDataView = brand(DataView.prototype, 'buffer')
const isRegExp = (value: unknown): boolean =>
  isObject(value) && value !== RegExp.prototype && brand(RegExp.prototype, 'source')(value)
const isPromise = (value: unknown): boolean => value instanceof Promise
const isNativeError = (value: unknown): boolean => Error.isError(value)
const isArrayBufferView = (value: unknown): boolean => ArrayBuffer.isView(value)
const isTypedArray = (value: unknown): boolean => typedArrayName.call(value) !== undefined
const isUint8Array = isTyped('Uint8Array')
const isUint8ClampedArray = isTyped('Uint8ClampedArray')
const isUint16Array = isTyped('Uint16Array')
const isUint32Array = isTyped('Uint32Array')
const isInt8Array = isTyped('Int8Array')
const isInt16Array = isTyped('Int16Array')
const isInt32Array = isTyped('Int32Array')
const isFloat32Array = isTyped('Float32Array')
const isFloat64Array = isTyped('Float64Array')
const isBigInt64Array = isTyped('BigInt64Array')
const isBigUint64Array = isTyped('BigUint64Array')
const isNumberObject = boxed(brand(Number.prototype, 'valueOf'))
const isStringObject = boxed(brand(String.prototype, 'valueOf'))
const isBooleanObject = boxed(brand(Boolean.prototype, 'valueOf'))
const isBigIntObject = boxed(brand(BigInt.prototype, 'valueOf'))
const isSymbolObject = boxed(brand(Symbol.prototype, 'valueOf'))
const boxes = [isNumberObject, isStringObject, isBooleanObject, isBigIntObject, isSymbolObject]
const isBoxedPrimitive = (value: unknown): boolean => boxes.some((check) => check(value))
const isAsyncFunction = (value: unknown): boolean => typeof value === 'function' && tagOf(value).startsWith('[object Async')
const isGeneratorFunction = (value: unknown): boolean =>
  typeof value === 'function' && tagOf(value).endsWith('GeneratorFunction]')
const isGeneratorObject = (value: unknown): boolean => isObject(value) && tagOf(value).endsWith('Generator]')
const isArgumentsObject = (value: unknown): boolean => tagOf(value) === '[object Arguments]'

export {
  isAnyArrayBuffer,
  isArgumentsObject,
  isArrayBuffer,
  isArrayBufferView,
  isAsyncFunction,
  isBigInt64Array,
  isBigIntObject,
  isBigUint64Array,
  isBooleanObject,
  isBoxedPrimitive,
  isDataView,
  isDate,
  isFloat32Array,
  isFloat64Array,
  isGeneratorFunction,
  isGeneratorObject,
  isInt16Array,
  isInt32Array,
  isInt8Array,
  isMap,
  isNativeError,
  isNumberObject,
  isPromise,
  isRegExp,
  isSet,
  isSharedArrayBuffer,
  isStringObject,
  isSymbolObject,
  isTypedArray,
  isUint16Array,
  isUint32Array,
  isUint8Array,
  isUint8ClampedArray,
  isWeakMap,
  isWeakSet,
}
export default {
  isAnyArrayBuffer,
  isArgumentsObject,
  isArrayBuffer,
  isArrayBufferView,
  isAsyncFunction,
  isBigInt64Array,
  isBigIntObject,
  isBigUint64Array,
  isBooleanObject,
  isBoxedPrimitive,
  isDataView,
  isDate,
  isFloat32Array,
  isFloat64Array,
  isGeneratorFunction,
  isGeneratorObject,
  isInt16Array,
  isInt32Array,
  isInt8Array,
  isMap,
  isNativeError,
  isNumberObject,
  isPromise,
  isRegExp,
  isSet,
  isSharedArrayBuffer,
  isStringObject,
  isSymbolObject,
  isTypedArray,
  isUint16Array,
  isUint32Array,
  isUint8Array,
  isUint8ClampedArray,
  isWeakMap,
  isWeakSet,
}
