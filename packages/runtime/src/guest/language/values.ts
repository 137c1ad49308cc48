import {
  arrayBufferByteLength,
  dataViewBuffer,
  dataViewByteLength,
  dataViewByteOffset,
  isView,
  iteratorSymbol,
  type List,
  regExpExec,
  SafeList,
  SafeUint8Array,
  stringSlice,
  stringToWellFormed,
  typedArrayBuffer,
  typedArrayByteLength,
  typedArrayByteOffset,
  viewName,
} from './primordials.ts'

/** What WebIDL calls DOMString: a symbol throws a TypeError, anything else becomes text. */
export function toText(value: unknown): string {
  // oxlint-disable-next-line typescript/no-unnecessary-template-expression -- the value need not be a string
  return typeof value === 'string' ? value : `${value as string}`
}

/** What WebIDL calls USVString: text whose surrogates all have a partner. */
export function toScalarText(value: unknown): string {
  return stringToWellFormed(toText(value))
}

/** What WebIDL calls a number: a symbol or a BigInt throws a TypeError. */
export function toNumber(value: unknown): number {
  // oxlint-disable-next-line typescript/no-unnecessary-type-conversion -- the value need not be a number
  return +(value as number)
}

/** Whether WebIDL takes a value for a sequence: what is not, it takes for a record. */
export function isIterable(value: object): value is Iterable<unknown> {
  const method = (value as Record<symbol, unknown>)[iteratorSymbol]
  return method !== undefined && method !== null
}

/**
 * What an iterable of user code gives. The one place that iterates what the runtime did not make. It runs user code, which may
 * throw.
 */
export function valuesOf<T>(iterable: Iterable<T>): List<T> {
  const values = new SafeList<T>()
  // oxlint-disable-next-line guest/primordials -- how an iterable is iterated is for user code to say
  for (const value of iterable) values[values.length] = value
  return values
}

/** The bytes of an ArrayBuffer or a view, not copied; undefined for anything else. */
export function bytesOf(source: unknown): Uint8Array | undefined {
  if (typeof source !== 'object' || source === null) return undefined
  if (isView(source)) {
    return viewName(source) === undefined
      ? new SafeUint8Array(dataViewBuffer(source), dataViewByteOffset(source), dataViewByteLength(source))
      : new SafeUint8Array(typedArrayBuffer(source), typedArrayByteOffset(source), typedArrayByteLength(source))
  }
  return isBuffer(source) ? new SafeUint8Array(source) : undefined
}

function isBuffer(source: object): source is ArrayBuffer {
  try {
    arrayBufferByteLength(source)
    return true
  } catch {
    return false
  }
}

/**
 * Whether a pattern, which must not be global, is found in a text. Unlike `test` this asks no `exec` that user code may have set.
 */
export function matches(text: string, pattern: RegExp): boolean {
  return regExpExec(pattern, text) !== null
}

/** Replaces each match of a global pattern that matches no empty text. `replace` must not use the same pattern. */
export function replaceMatches(text: string, pattern: RegExp, replace: (match: string) => string): string {
  let result = ''
  let copied = 0
  pattern.lastIndex = 0
  for (let match = regExpExec(pattern, text); match !== null; match = regExpExec(pattern, text)) {
    result += stringSlice(text, copied, match.index) + replace(match[0])
    copied = match.index + match[0].length
  }
  return copied === 0 ? text : result + stringSlice(text, copied)
}

/** Removes each match of a global pattern that matches no empty text. */
export function removeMatches(text: string, pattern: RegExp): string {
  return replaceMatches(text, pattern, () => '')
}
