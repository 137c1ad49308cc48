/** The native part of Node.js' `buffer` module. */
import {
  type Bytes,
  byteLengthUtf8,
  encode,
  type EncodingName,
  ENCODINGS,
  slice,
  slices,
  type SliceName,
  write,
} from './buffer-codecs.ts'

// A buffer has its own, which come here.
const { indexOf, lastIndexOf } = Uint8Array.prototype

const kMaxLength = 2 ** 53 - 1
const kStringMaxLength = 2 ** 29 - 24

const reads = Object.fromEntries(
  (Object.keys(slices) as SliceName[]).map((name) => [
    name,
    (bytes: Bytes, start?: number, end?: number) => slice(name, bytes, start, end),
  ]),
)
const WRITES = {
  asciiWriteStatic: 'ascii',
  base64urlWrite: 'base64url',
  base64Write: 'base64',
  hexWrite: 'hex',
  latin1WriteStatic: 'latin1',
  ucs2Write: 'utf16le',
  utf8WriteStatic: 'utf8',
} as const
const writes = Object.fromEntries(
  Object.entries(WRITES).map(([name, encoding]) => [
    name,
    (bytes: Bytes, text: string, offset?: number, length?: number) => write(bytes, text, encoding, offset, length),
  ]),
)

const order = (difference: number): number => (difference > 0 ? 1 : difference < 0 ? -1 : 0)

function compare(a: Bytes, b: Bytes): number {
  const length = Math.min(a.length, b.length)
  for (let index = 0; index < length; index++) {
    if (a[index] !== b[index]) return order(a[index]! - b[index]!)
  }
  return order(a.length - b.length)
}

function compareOffset(a: Bytes, b: Bytes, bStart: number, aStart: number, bLength: number, aLength: number): number {
  const outOfRange = (name: string): never => {
    throw Object.assign(new RangeError(`The value of "${name}" is out of range.`), { code: 'ERR_OUT_OF_RANGE' })
  }
  if (aStart > a.length) outOfRange('sourceStart')
  if (bStart > b.length) outOfRange('targetStart')
  return compare(a.subarray(aStart, aStart + aLength), b.subarray(bStart, bStart + bLength))
}

function copy(source: Bytes, target: Bytes, targetStart: number, sourceStart: number, count: number): number {
  const from = new Uint8Array(source.buffer, source.byteOffset + sourceStart, count)
  new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(from, targetStart)
  return count
}

function copyArrayBuffer(
  target: ArrayBuffer,
  targetStart: number,
  source: ArrayBuffer,
  sourceStart: number,
  count: number,
): void {
  new Uint8Array(target, targetStart, count).set(new Uint8Array(source, sourceStart, count))
}

/** @returns -1: the end is beyond the buffer; -2: nothing to fill with */
function fill(bytes: Bytes, value: string | number | Bytes, start: number, end: number, encoding?: string): number | undefined {
  if (start < 0 || end > bytes.length) return -2
  if (start >= end) return undefined
  if (typeof value === 'number' || typeof value === 'boolean') {
    bytes.fill(Number(value) & 255, start, end)
    return undefined
  }
  const pattern = typeof value === 'string' ? encode(value, nameOf(encoding)) : viewOf(value)
  if (pattern.length === 0) return -1
  for (let index = start; index < end; index++) bytes[index] = pattern[(index - start) % pattern.length]!
  return undefined
}

function viewOf(value: ArrayBufferView): Bytes {
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
}

function nameOf(encoding: unknown): EncodingName {
  if (typeof encoding === 'number') return ENCODINGS[encoding] ?? 'utf8'
  switch (String(encoding).toLowerCase()) {
    case 'ucs2':
    case 'ucs-2':
    case 'utf16le':
    case 'utf-16le':
      return 'utf16le'
    case 'latin1':
    case 'binary':
      return 'latin1'
    case 'ascii':
    case 'hex':
    case 'base64':
    case 'base64url':
      return String(encoding).toLowerCase() as EncodingName
    default:
      return 'utf8'
  }
}

/** Where to begin; below 0 if nowhere. */
function startOf(length: number, needle: number, offset: number, isForward: boolean): number {
  let from = offset < 0 ? offset + length : offset
  if (from < 0) {
    if (!isForward) return -1
    from = 0
  }
  if (from > length - needle) {
    if (isForward) return needle === 0 ? length : -1
    from = length - needle
  }
  return from
}

function search(bytes: Bytes, needle: Bytes, offset: number, step: number, isForward: boolean): number {
  const { length } = bytes
  if (needle.length === 0) {
    const from = offset < 0 ? Math.max(0, offset + length) : offset
    return Math.min(from, length)
  }
  if (length < needle.length) return -1
  const start = startOf(length, needle.length, offset, isForward)
  if (start < 0) return -1
  const first = needle[0]!
  for (let at = start; isForward ? at <= length - needle.length : at >= 0; at += isForward ? 1 : -1) {
    if (isForward) {
      at = indexOf.call(bytes, first, at)
      if (at === -1 || at > length - needle.length) return -1
    }
    if (step === 2 && at % 2 !== 0) continue
    let index = 0
    while (index < needle.length && bytes[at + index] === needle[index]) index++
    if (index === needle.length) return at
  }
  return -1
}

const indexOfString = (bytes: Bytes, text: string, offset: number, encoding: unknown, isForward: boolean): number => {
  const name = nameOf(encoding)
  return search(bytes, encode(text, name), offset, name === 'utf16le' ? 2 : 1, isForward)
}
const indexOfBuffer = (bytes: Bytes, needle: Bytes, offset: number, encoding: unknown, isForward: boolean): number =>
  search(bytes, viewOf(needle), offset, nameOf(encoding) === 'utf16le' ? 2 : 1, isForward)
const indexOfNumber = (bytes: Bytes, value: number, offset: number, isForward: boolean): number => {
  const start = bytes.length === 0 ? -1 : startOf(bytes.length, 1, offset, isForward)
  if (start < 0) return -1
  return isForward ? indexOf.call(bytes, value & 255, start) : lastIndexOf.call(bytes, value & 255, start)
}

function swap(size: number): (bytes: Bytes) => Bytes {
  return (bytes) => {
    for (let start = 0; start + size <= bytes.length; start += size) bytes.subarray(start, start + size).reverse()
    return bytes
  }
}

function isUtf8(value: ArrayBufferView | ArrayBuffer): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(value as Uint8Array)
    return true
  } catch {
    return false
  }
}

function isAscii(value: ArrayBufferView | ArrayBuffer): boolean {
  return (ArrayBuffer.isView(value) ? viewOf(value) : new Uint8Array(value)).every((byte) => byte < 0x80)
}

/** @returns -2 if the text is not valid, as Node.js numbers it */
function atob(text: string): string | number {
  try {
    return globalThis.atob(text)
  } catch {
    return -2
  }
}

function btoa(text: string): string | number {
  try {
    return globalThis.btoa(text)
  } catch {
    return -1
  }
}

export default {
  ...reads,
  ...writes,
  kMaxLength,
  kStringMaxLength,
  byteLengthUtf8,
  compare,
  compareOffset,
  copy,
  copyArrayBuffer,
  createUnsafeArrayBuffer: (size: number) => new ArrayBuffer(size),
  fill,
  indexOfBuffer,
  indexOfNumber,
  indexOfString,
  isAscii,
  isUtf8,
  swap16: swap(2),
  swap32: swap(4),
  swap64: swap(8),
  atob,
  btoa,
  arrayBufferAlignedOffset: () => 0,
  setDetachKey() {},
}
